import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { systemCode } from "./results.ts";

/** `O_CLOEXEC`, as /proc writes the flags of a descriptor: octal. */
const CLOSED_ON_EXEC = 0o2_000_000;

/** What a child gets in place of descriptors that it is not to have. */
export interface CoveredDescriptors {
  /** For the descriptors from the first one on. */
  readonly stdio: readonly ("ignore" | number)[];
  /** To be called once the child was started. */
  close(): void;
}

/**
 * Covers every descriptor from `first` on that a child would inherit with one of /dev/null. Node opens its own so that no child
 * gets them, and closes those below 17 that it was started with; a higher one, or one of a native addon, would go through.
 * Linux only: elsewhere there is no list of them.
 */
export function coveredDescriptors(first: number): CoveredDescriptors {
  const inherited = process.platform === "linux" ? inheritedFrom(first) : [];
  const last = Math.max(...inherited);
  if (inherited.length === 0) return { stdio: [], close: () => undefined };
  const nothing = openSync("/dev/null", "r");
  return {
    stdio: Array.from({ length: last - first + 1 }, (_, at) => (inherited.includes(first + at) ? nothing : "ignore")),
    close: () => closeSync(nothing),
  };
}

function inheritedFrom(first: number): readonly number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => descriptor >= first && !isClosedOnExec(descriptor));
}

function isClosedOnExec(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1];
    return (Number.parseInt(flags ?? "0", 8) & CLOSED_ON_EXEC) !== 0;
  } catch (thrown) {
    // The one that the folder itself was read with, or one that was closed meanwhile.
    if (systemCode(thrown) === "ENOENT") return true;
    throw thrown;
  }
}
