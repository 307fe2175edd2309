import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { systemCode } from "./results.ts";

/** `O_CLOEXEC` in the octal flags of /proc. */
const CLOSED_ON_EXEC = 0o2_000_000;
/** Holds the first two lines of a descriptor's information, the position and the flags. */
const INFO_BYTES = 128;

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
  const info = Buffer.allocUnsafe(INFO_BYTES);
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => descriptor >= first && !isClosedOnExec(descriptor, info));
}

/** False if the flags cannot be read, so that the descriptor is replaced. `info` is a buffer to read into. */
function isClosedOnExec(descriptor: number, info: Buffer): boolean {
  try {
    // One read of a few bytes, since every sandboxed command asks about every descriptor of this process.
    const file = openSync(`/proc/self/fdinfo/${descriptor}`, "r");
    try {
      const text = info.toString("latin1", 0, readSync(file, info));
      const flags = /^flags:\s*([0-7]+)\n/m.exec(text)?.[1] ?? "0";
      return (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) !== 0;
    } finally {
      closeSync(file);
    }
  } catch (thrown) {
    // The descriptor that listed the folder, or another one, is closed already.
    if (systemCode(thrown) === "ENOENT") return true;
    throw thrown;
  }
}
