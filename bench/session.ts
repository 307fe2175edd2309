import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHost, createMemoryJournals, type RunHost } from "@sluice/core";
import { createSession, type RunResult, type Session, type SessionOptions } from "@sluice/stages";

/** A folder for the life of this process. */
export function scratch(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-bench-")));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A session as a person's: with one key to look for in all that streams by, and nobody to ask. */
export function benchSession(cwd: string, options: SessionOptions): Session {
  return createSession({ cwd, env: { PATH: "/usr/bin", BENCH_API_KEY: "sk-bench-0123456789abcdefghij" }, ...options });
}

/** A store in memory that forgets a run as soon as the next is over: a hundred long ones would fill the heap. */
export function shortMemory(): RunHost {
  return createHost(createMemoryJournals({ keepFinished: 1 }).connect());
}

/** A benchmark of runs that fail would measure nothing. */
export function completed<O>(result: RunResult<O>): O {
  if (result.status === "completed") return result.output;
  throw new Error(`a run ended as ${result.status}: ${JSON.stringify(result)}`);
}

/** CPU time of this process so far, in milliseconds. */
export function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
