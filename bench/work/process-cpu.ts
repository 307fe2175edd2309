import { readFileSync } from "node:fs";

/** Linux counts CPU time in hundredths of a second. */
const MS_A_TICK = 10;

/** The CPU time of a process in milliseconds, including all its threads. Linux only. */
export function cpuOf(pid: number): number {
  // The fields after the name, which is in parentheses and may contain any character.
  const [, fields = ""] = /\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
  const [user = 0, system = 0] = fields.split(" ").slice(11, 13).map(Number);
  return (user + system) * MS_A_TICK;
}

/** The resident memory of a process in MB. */
export function residentMbOf(pid: number): number {
  const [, kilobytes = ""] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1_000;
}
