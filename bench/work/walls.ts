import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";

const program = fileURLToPath(new URL("wall-commands.ts", import.meta.url));
/** Closes what the bench inherited, since a sandboxed command pays for each descriptor of its parent that it must not get. */
const CLOSE_INHERITED = 'for open in $(ls /proc/self/fd); do ((open > 3)) && eval "exec $open>&-"; done';
const report = z.record(z.string(), z.number());

/** Sandboxed commands compared with bare ones, with the CPU time of all their processes. */
export async function walledCommands({ quick }: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  const times = quick ? 20 : 200;
  return {
    warmUps: 0,
    slice: async () => {
      // The shell waits for the orphans that it adopts.
      const namespace = [
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        "/bin/bash",
        "-c",
        `${CLOSE_INHERITED}; "$@"; exit $?`,
        "bash",
      ];
      const node = [
        process.execPath,
        ...process.execArgv.filter((arg) => arg !== "--expose-gc"),
        program,
        String(times),
      ];
      const { status, stderr, output } = spawnSync("unshare", [...namespace, ...node], {
        cwd,
        encoding: "utf8",
        stdio: ["ignore", "ignore", "pipe", "pipe"],
      });
      if (status !== 0) throw new Error(`the commands ended with ${status}: ${stderr}`);
      return { units: times, facts: report.parse(JSON.parse(output[3] ?? "")) };
    },
  };
}
