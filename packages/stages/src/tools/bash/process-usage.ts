import { readdirSync, readFileSync, statSync } from "node:fs";
import type { Clock } from "@sluice/core";
import { withFallback } from "../files/results.ts";

/** How often usage is measured. In a sandbox only its own processes are read, elsewhere all of the machine. */
const WALLED_POLL_MS = 100;
const POLL_MS = 500;
/** `USER_HZ`, which is 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

/** Limits on all processes of a call together. CPU time and memory are limited on Linux only. */
export interface ProcessLimits {
  /** Of both outputs together. */
  readonly outputBytes?: number;
  /** Resident memory without mapped files. */
  readonly memoryBytes?: number;
  /** Includes ended processes. */
  readonly cpuSeconds?: number;
}

export type UsageLimit = "memory" | "cpu";

interface Watched {
  /** The leader of the process group. */
  readonly pid: number;
  readonly inside: (() => number | undefined) | undefined;
  readonly limits: ProcessLimits;
  readonly clock: Clock;
  readonly over: (limit: UsageLimit) => void;
}

/** Measures usage periodically and reports an exceeded limit; the returned function stops it. */
export function watchUsage({ pid, inside, limits, clock, over }: Watched): () => void {
  const { memoryBytes, cpuSeconds } = limits;
  if (process.platform !== "linux" || (memoryBytes === undefined && cpuSeconds === undefined)) return () => undefined;
  const most = { memory: memoryBytes ?? Number.POSITIVE_INFINITY, cpu: cpuSeconds ?? Number.POSITIVE_INFINITY };
  let cancel = (): void => undefined;
  const look = (): void => {
    const used = usageOf(inside === undefined ? groupOf(pid) : namespaceOf(inside()));
    if (used.memory > most.memory) over("memory");
    else if (used.cpu > most.cpu) over("cpu");
    cancel = clock.after(inside === undefined ? POLL_MS : WALLED_POLL_MS, look);
  };
  cancel = clock.after(WALLED_POLL_MS, look);
  return () => cancel();
}

/** The bytes and seconds that processes use, given their folders in /proc. */
function usageOf(folders: readonly string[]): Record<UsageLimit, number> {
  let kilobytes = 0;
  let ticks = 0;
  for (const folder of folders) {
    // Without pages of files, which the kernel can reclaim.
    for (const [, size] of textOf(`${workingThread(folder) ?? folder}/status`).matchAll(
      /^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm,
    ))
      kilobytes += Number(size);
    // Its own time, and that of its children that have been waited for.
    for (const value of statOf(folder).slice(11, 15)) ticks += Number(value);
  }
  return { memory: kilobytes * 1024, cpu: ticks / TICKS_PER_SECOND };
}

/** All processes of a group and their descendants. */
function groupOf(leader: number): readonly string[] {
  const all = processesIn("/proc").map((folder) => {
    const [, parent, group] = statOf(folder);
    return { folder, pid: Number(folder.slice("/proc/".length)), parent: Number(parent), group: Number(group) };
  });
  const members = new Map(all.filter((one) => one.group === leader).map((one) => [one.pid, one.folder]));
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const { pid, parent, folder } of all) if (members.has(parent)) members.set(pid, folder);
  }
  return [...members.values()];
}

/** All processes of a PID namespace, found through its first process. */
function namespaceOf(first: number | undefined): readonly string[] {
  if (first === undefined) return [];
  const folder = `/proc/${first}/root/proc`;
  // Until the sandbox exists, this is the machine's own /proc.
  return deviceOf(folder) === deviceOf("/proc") ? [] : processesIn(folder);
}

function deviceOf(folder: string): number | undefined {
  return withFallback(() => statSync(folder).dev, undefined);
}

/** Empty if the process has ended or has not mounted its /proc yet. */
function processesIn(folder: string): readonly string[] {
  const names = withFallback(() => readdirSync(folder), []);
  return names.filter((name) => /^\d+$/.test(name)).map((name) => `${folder}/${name}`);
}

/** The folder of a thread of a process that works: the first thread, which stands for the process, may have ended before the others. */
export function workingThread(folder: string): string | undefined {
  const works = (one: string): boolean => /^[^ZX]/.test(statOf(one)[0] ?? "");
  return works(folder) ? folder : processesIn(`${folder}/task`).find(works);
}

/** The fields of a process after its name, which is in parentheses and may contain any character: state, parent, group. */
export function statOf(folder: string): readonly string[] {
  const text = textOf(`${folder}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function textOf(file: string): string {
  return withFallback(() => readFileSync(file, "latin1"), "");
}
