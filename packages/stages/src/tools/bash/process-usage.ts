import { readdirSync, readFileSync, statSync } from "node:fs";
import type { Clock } from "@sluice/core";
import { systemCode } from "../files/results.ts";

/** How often the processes of a call are looked at. Behind a wall only they are read, elsewhere all of the machine. */
const WALLED_POLL_MS = 100;
const POLL_MS = 500;
/** `USER_HZ`, which is the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** What a call may use up. CPU time and memory are watched on Linux only. */
export interface ProcessLimits {
  /** Of both outputs together. */
  readonly outputBytes?: number;
  /** Of all its processes together: what they hold in memory, without files that are mapped into it. */
  readonly memoryBytes?: number;
  /** Of all its processes together, ended ones included. */
  readonly cpuSeconds?: number;
}

export type UsageLimit = "memory" | "cpu";

interface Watched {
  /** The leader of the group. */
  readonly pid: number;
  readonly inside: (() => number | undefined) | undefined;
  readonly limits: ProcessLimits;
  readonly clock: Clock;
  readonly over: (limit: UsageLimit) => void;
}

/** Looks now and then whether a call uses more than it may; the returned function ends that. */
export function watchUsage({ pid, inside, limits, clock, over }: Watched): () => void {
  const { memoryBytes, cpuSeconds } = limits;
  if (process.platform !== "linux" || (memoryBytes === undefined && cpuSeconds === undefined)) return () => undefined;
  const most = { memory: memoryBytes ?? Number.POSITIVE_INFINITY, cpu: cpuSeconds ?? Number.POSITIVE_INFINITY };
  let cancel = (): void => undefined;
  const look = (): void => {
    const used = usageOf(inside === undefined ? groupOf(pid) : namespaceOf(inside()));
    if (used.memoryBytes > most.memory) over("memory");
    else if (used.cpuSeconds > most.cpu) over("cpu");
    cancel = clock.after(inside === undefined ? POLL_MS : WALLED_POLL_MS, look);
  };
  cancel = clock.after(WALLED_POLL_MS, look);
  return () => cancel();
}

interface Usage {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
}

/** Of processes, by their folders in /proc. */
function usageOf(folders: readonly string[]): Usage {
  let kilobytes = 0;
  let ticks = 0;
  for (const folder of folders) {
    // Without pages of files, which the kernel takes back when it needs them.
    for (const [, size] of textOf(`${folder}/status`).matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm))
      kilobytes += Number(size);
    // Its own time, and that of the children it waited for.
    for (const spent of statOf(folder).slice(11, 15)) ticks += Number(spent);
  }
  return { memoryBytes: kilobytes * 1024, cpuSeconds: ticks / TICKS_PER_SECOND };
}

/** All of a group, and whatever descends from it. */
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

/** All of a process namespace, by its first process: its own /proc shows no others. */
function namespaceOf(first: number | undefined): readonly string[] {
  if (first === undefined) return [];
  const folder = `/proc/${first}/root/proc`;
  // Until the wall is built it still sees that of the machine.
  return deviceOf(folder) === deviceOf("/proc") ? [] : processesIn(folder);
}

function deviceOf(folder: string): number | undefined {
  try {
    return statSync(folder).dev;
  } catch (thrown) {
    if (systemCode(thrown) !== undefined) return undefined;
    throw thrown;
  }
}

function processesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .map((name) => `${folder}/${name}`);
  } catch (thrown) {
    // It ended meanwhile, or its /proc is not mounted yet.
    if (systemCode(thrown) !== undefined) return [];
    throw thrown;
  }
}

/** The fields from the state on: the name before them is in parentheses and may hold any character. */
function statOf(folder: string): readonly string[] {
  const text = textOf(`${folder}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch (thrown) {
    if (systemCode(thrown) !== undefined) return "";
    throw thrown;
  }
}
