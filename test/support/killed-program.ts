import { field, type Json, type ProgramEnd, type StepRunner } from "@sluice/core";

/** What a process says about a step while it works: that its function was called, and that its value was read back. */
type Say = (what: "called" | "saw", runId: string, stepId: string) => void;

/** Steps that read and write, a long value, a wait, a sleep, and forks in forks: something to be killed in. */
export function killedProgram(say: Say): (steps: StepRunner, input: Json) => Promise<ProgramEnd> {
  return async (steps, input) => {
    const step = async (stepId: string, value: Json, writes = false): Promise<Json> => {
      const seen = await steps.run(
        stepId,
        async () => {
          say("called", steps.runId, stepId);
          await new Promise((resolve) => setImmediate(resolve));
          return value;
        },
        writes ? { open: { events: [{ type: "call.started", data: { callId: stepId } }], intent: { stepId } } } : {},
      );
      say("saw", steps.runId, stepId);
      return seen;
    };
    const depth = steps.runId.split("/fan/").length;
    const values = [await step("read", depth), await step("write", steps.runId, true)];
    if (depth === 1) {
      await step("long", "x".repeat(300_000));
      await steps.sleepUntil("sleep", (await steps.now("now")) + 5);
      values.push((await steps.waitForSignal("go"))?.payload ?? null);
    }
    if (depth < 3 && field(input, "leaf") !== true) {
      const children = ["a", "b", "c"].map((key) => ({ key, input: { leaf: key !== "b" }, events: [] }));
      const ends = await steps.fork("fan", children, {
        onFailure: "settle",
        failed: () => false,
        open: { events: [{ type: "fork.started", data: { fork: "fan" } }] },
        joined: () => [],
      });
      values.push(...Object.values(ends).map(({ value }) => value));
    }
    values.push(await step("last", "end", true));
    return { status: "completed", value: values, events: [{ type: "run.finished", data: { status: "completed" } }] };
  };
}
