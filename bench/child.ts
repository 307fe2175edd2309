// One workload in a process of its own: warms up, then does one slice for every message from its parent.
import type { Slice, Workload } from "./measure.ts";
import { workloads } from "./work/all.ts";

const [, , name = "", mode] = process.argv;
const open = workloads.get(name);
if (open === undefined) throw new Error(`no workload is called ${JSON.stringify(name)}`);
await serve(await open({ quick: mode === "quick" }));

async function serve(workload: Workload): Promise<void> {
  for (let done = 0; done < workload.warmUps; done += 1) await workload.slice();
  workload.warmedUp?.();
  process.on("message", (message) => {
    if (message === "slice") void measure(workload).then((slice) => process.send?.(slice));
    else void (workload.close?.() ?? Promise.resolve()).then(() => process.disconnect());
  });
  process.send?.("ready");
}

async function measure(workload: Workload): Promise<Slice> {
  const before = process.cpuUsage();
  const done = await workload.slice();
  const { user, system } = process.cpuUsage(before);
  return { ...done, cpuMs: (user + system) / 1000 };
}
