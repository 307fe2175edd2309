import { readFileSync } from "node:fs";

/** Whether a process works: one that only waits to be reaped does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
    // The state comes after the name, which is in parentheses and may hold any character.
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && (thrown.code === "ESRCH" || thrown.code === "ENOENT"))
      return false;
    throw thrown;
  }
}
