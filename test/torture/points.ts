import { closeSync, openSync, readdirSync, writeSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";

/** What a process says on stdout, one line each, so that it is known whatever becomes of the process. */
export type Report =
  /** It is at this place, for the first time in this process. */
  | { readonly point: string }
  /** It does something that must not be done again once the journal holds `recorded`. */
  | { readonly deed: string; readonly recorded: string; readonly prompt?: readonly string[] }
  | { readonly ended: string }
  /** It could not go on: the code of the error, and its message. */
  | { readonly refused: string; readonly why: string };

/** How a process is to end. */
export interface Death {
  /** Kills itself when it is at this place, */
  readonly label?: string;
  /** or at the n-th place it comes to, from 1. */
  readonly nth?: number;
  /** Stops itself there instead, having lost the lock by which others know that it lives. */
  readonly instead?: "lose-lock-and-stop" | "stop";
}

/** The places of one process at which it may die. */
export interface Points {
  at(label: string): void;
  deed(deed: string, recorded: string, prompt?: readonly string[]): void;
}

/** For a process that nobody kills and nobody asks. */
export const NO_POINTS: Points = { at: () => undefined, deed: () => undefined };

export function say(report: Report): void {
  writeSync(1, `${JSON.stringify(report)}\n`);
}

export function deadlyPoints(death: Death, storeFolder: string): Points {
  const seen = new Set<string>();
  return {
    at(label) {
      if (seen.has(label)) return;
      seen.add(label);
      say({ point: label });
      if (label !== death.label && seen.size !== death.nth) return;
      if (death.instead === undefined) process.kill(process.pid, "SIGKILL");
      if (death.instead === "lose-lock-and-stop") loseLock(join(storeFolder, "owners"));
      process.kill(process.pid, "SIGSTOP");
    },
    deed: (deed, recorded, prompt) => say({ deed, recorded, ...(prompt === undefined ? {} : { prompt }) }),
  };
}

/** Opening a file that SQLite has locked in this process, and closing it, drops the lock: then others presume the process dead. */
function loseLock(owners: string): void {
  for (const name of readdirSync(owners)) {
    if (name.startsWith(`${process.pid}-`)) closeSync(openSync(join(owners, name), "r"));
  }
}

/** Makes opening a file to read or write it a point, and the renames that put one in its place. */
export function filesArePoints(points: Points): void {
  const { open, rename } = fs;
  const opened = new Map<string, number>();
  let renamed = 0;
  fs.open = async (path, flags, mode) => {
    const handle = await open(path, flags, mode);
    const file = basename(String(path)).replace(/^.*\.tmp$/, "a temporary file");
    const times = (opened.get(file) ?? 0) + 1;
    opened.set(file, times);
    points.at(`opened ${file} ${times}`);
    return handle;
  };
  fs.rename = async (from, to) => {
    renamed += 1;
    const which = `rename ${renamed} ${basename(String(to))}`;
    points.at(`before ${which}`);
    await rename(from, to);
    points.at(`after ${which}`);
  };
  syncBuiltinESMExports();
}
