import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { createSession, type RunResult, type Session, type SessionOptions } from "@sluice/stages";

/** A folder for the life of this process. */
export function scratch(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-bench-")));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A session with one key to search for in all output, and without interactors. */
export function benchSession(cwd: string, options: SessionOptions): Session {
  return createSession({ cwd, env: { PATH: "/usr/bin", BENCH_API_KEY: "sk-bench-0123456789abcdefghij" }, ...options });
}

/** A store in memory that drops a run once the next one ends: a hundred long runs would fill the heap. */
export function shortMemory(): RunHost {
  return createHost(createMemoryJournals({ keepFinished: 1 }).connect());
}

/** Throws for a failed run, whose measurements would be meaningless. */
export function completed<O>(result: RunResult<O>): O {
  if (result.status === "completed") return result.output;
  throw new Error(`a run ended as ${result.status}: ${JSON.stringify(result)}`);
}

/** CPU time of this process so far, in milliseconds. */
export function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
