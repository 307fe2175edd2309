import { join } from "node:path";
import { field, type Json, type ProgramEnd, type RunTask, type StepRunner } from "@sluice/core";
import { createHost } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import type { Points } from "./points.ts";
import { placeOf, watched } from "./watched-store.ts";
import type { OpenedWorld, WorldOptions } from "./world.ts";

/** Steps that read and write, a long value, signals that come early, a sleep, and forks in forks. */
function torturedSteps(
  points: Points,
  napMs: number,
  changed: boolean,
): (steps: StepRunner, input: Json) => Promise<ProgramEnd> {
  return async (steps, input) => {
    const step = (stepId: string, value: Json, writes = false): Promise<Json> =>
      steps.run(
        stepId,
        async () => {
          points.deed(`${placeOf(steps.runId)} ${stepId}`, `step ${placeOf(steps.runId)} ${stepId}`);
          await new Promise((resolve) => setImmediate(resolve));
          points.at(`works ${placeOf(steps.runId)} ${stepId}`);
          return value;
        },
        writes ? { open: { events: [{ type: "call.started", data: { callId: stepId } }], intent: { stepId } } } : {},
      );
    const depth = steps.runId.split("/fan/").length;
    const values = [await step(changed ? "peek" : "read", depth), await step("write", placeOf(steps.runId), true)];
    if (depth === 1) {
      await step("long", "x".repeat(300_000));
      await steps.sleepUntil("sleep", (await steps.now("now")) + napMs);
      // Notes come before the first "go", and the second one before anybody waits for it.
      values.push((await steps.waitForSignal("go", { timeoutMs: 60_000 }))?.payload ?? null);
      values.push((await steps.takeSignals("taken", "note")).map(({ payload }) => payload));
    }
    if (depth < 3 && field(input, "leaf") !== true) {
      const children = ["a", "b", "c"].map((key) => ({ key, input: { leaf: key !== "b" }, events: [] }));
      const ends = await steps.runChildren("fan", children, {
        onFailure: "settle",
        failed: () => false,
        open: { events: [{ type: "fanOut.started", data: { fanOut: "fan", siblings: ["a", "b", "c"] } }] },
        joined: (settled) => {
          const outcomes = Object.entries(settled).map(([name, { status, head }]) => ({ name, status, head }));
          return [{ type: "fanOut.joined", data: { fanOut: "fan", outcomes } }];
        },
      });
      values.push(...Object.values(ends).map(({ value }) => value));
    }
    if (depth === 1) values.push((await steps.waitForSignal("go"))?.payload ?? null);
    values.push(await step("last", "end", true));
    return { status: "completed", value: values, events: [{ type: "run.finished", data: { status: "completed" } }] };
  };
}

const INNERMOST = ["a", "b", "c"].map((key) => [3, `main/fan/b/fan/${key}`, "end"]);
export const STEPS_OUTPUT: Json = [
  1,
  "main",
  "went",
  ["one", "two"],
  [2, "main/fan/a", "end"],
  [2, "main/fan/b", ...INNERMOST, "end"],
  [2, "main/fan/c", "end"],
  "went on",
  "end",
];

const NAP_MS = 5;

export function openStepsWorld({ folder, points, napMs = NAP_MS, changed = false }: WorldOptions): OpenedWorld {
  const { store, clock } = watched(openJournalStore(join(folder, "store")), points, () => undefined);
  const host = createHost(store, { clock });
  const program = torturedSteps(points, napMs, changed);
  const ended = async (task: RunTask): Promise<string> => {
    const settled = await task.settled;
    return "end" in settled ? settled.end.status : "suspended";
  };
  return {
    host,
    start: async () =>
      ended(await host.start({ runId: "r1", input: {}, events: [{ type: "run.started", data: {} }], program })),
    resume: async (runId) => ended(await host.resume(runId, program)),
    close: () => host.close(),
  };
}
