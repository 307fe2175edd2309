import { writeSync } from "node:fs";
import type { WriteStream } from "node:tty";
import type { Size } from "./reflow.ts";

/** How long `restore` waits for a blocked terminal, in milliseconds. */
const RESTORE_TIMEOUT_MS = 500;

/** The size of a terminal, by default 80 by 24. */
export function sizeOf({ columns, rows }: WriteStream): Size {
  return { columns: Math.max(1, columns || 80), rows: Math.max(1, rows || 24) };
}

/** Asks for the current size, with a resize event if it changed: Node's own signal may arrive after frames of the old size. */
export function askSize(stdout: WriteStream): void {
  if ("_refreshSize" in stdout && typeof stdout._refreshSize === "function") {
    Reflect.apply(stdout._refreshSize, stdout, []);
  }
}

/** Writes all of a text, also to a terminal that accepts only parts at once. */
export function writeWhole(fd: number, text: string): void {
  let remaining = Buffer.from(text);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let waited = 0;
  while (remaining.length > 0 && waited < RESTORE_TIMEOUT_MS) {
    try {
      remaining = remaining.subarray(writeSync(fd, remaining));
    } catch (error) {
      const busy = error instanceof Error && "code" in error && error.code === "EAGAIN";
      if (!busy) return;
      Atomics.wait(pause, 0, 0, 5);
      waited += 5;
    }
  }
}
