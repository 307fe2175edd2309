import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { systemCode } from "./results.ts";

/** `O_CLOEXEC` in the octal flags of /proc. */
const CLOSED_ON_EXEC = 0o2_000_000;

/** What a child gets instead of the descriptors that it must not inherit. */
export interface CoveredDescriptors {
  /** For the descriptors from the first one on. */
  readonly stdio: readonly ("ignore" | number)[];
  /** Call this after the child was started. */
  close(): void;
}

/**
 * Replaces every descriptor from `first` on that a child would inherit with /dev/null: Node leaves those from 17 on, and those
 * of native addons, open. Linux only, since other systems do not list descriptors.
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
    // The descriptor that listed the folder, or another one, is closed already.
    if (systemCode(thrown) === "ENOENT") return true;
    throw thrown;
  }
}
