import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Slice, WorkloadOptions } from "./measure.ts";

const childFile = fileURLToPath(new URL("child.ts", import.meta.url));
const sliceSchema = z.object({ units: z.number(), cpuMs: z.number(), facts: z.record(z.string(), z.number()) });

/** A workload in a process of its own. */
interface Measured {
  readonly name: string;
  slice(): Promise<Slice>;
  end(): Promise<void>;
}

async function start(name: string, { quick }: WorkloadOptions): Promise<Measured> {
  const child = fork(childFile, [name, quick ? "quick" : "full"], { execArgv: [...process.execArgv, "--expose-gc"] });
  await answerOf(child, name);
  return {
    name,
    slice: async () => {
      child.send("slice");
      return sliceSchema.parse(await answerOf(child, name));
    },
    end: async () => {
      child.send("end");
      await once(child, "exit");
    },
  };
}

function answerOf(child: ChildProcess, name: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void =>
      reject(new Error(`the workload ${name} ended with exit code ${code}`));
    child.once("exit", onExit);
    child.once("message", (message) => {
      child.off("exit", onExit);
      resolve(message);
    });
  });
}

/** The slices of each workload, in order. */
export type Rounds = ReadonlyMap<string, readonly Slice[]>;

/**
 * Alternates slices of several workloads, so that other load affects all of them. Each has its own process, so that they do not
 * share a heap or the compiler's type feedback.
 */
export async function alternate(names: readonly string[], rounds: number, options: WorkloadOptions): Promise<Rounds> {
  const processes: Measured[] = [];
  for (const name of names) processes.push(await start(name, options));
  const taken = new Map<string, Slice[]>(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const one of processes) taken.get(one.name)?.push(await one.slice());
  }
  for (const one of processes) await one.end();
  return taken;
}
