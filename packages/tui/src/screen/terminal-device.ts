import { writeSync } from "node:fs";
import type { WriteStream } from "node:tty";
import type { Size } from "./reflow.ts";

/** A terminal that takes nothing for so long gets no more of what `restore` writes. */
const RESTORE_PATIENCE_MS = 500;

/** What a terminal has; where it does not say, what every one has. */
export function sizeOf({ columns, rows }: WriteStream): Size {
  return { columns: Math.max(1, columns || 80), rows: Math.max(1, rows || 24) };
}

/**
 * Node learns of a new size by a signal, which waits for its turn while frames are made and written for the old one. Asking
 * the terminal just before a write leaves next to nothing of that gap. Tells of a new size as the signal does.
 */
export function askSize(stdout: WriteStream): void {
  if ("_refreshSize" in stdout && typeof stdout._refreshSize === "function") {
    Reflect.apply(stdout._refreshSize, stdout, []);
  }
}

/** Writes to a terminal that may not take everything at once, for as long as it takes anything. */
export function writeWhole(fd: number, text: string): void {
  let rest = Buffer.from(text);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let waited = 0;
  while (rest.length > 0 && waited < RESTORE_PATIENCE_MS) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const busy = error instanceof Error && "code" in error && error.code === "EAGAIN";
      // A terminal that is gone needs no restoring.
      if (!busy) return;
      Atomics.wait(pause, 0, 0, 5);
      waited += 5;
    }
  }
}
