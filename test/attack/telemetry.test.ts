import { runInNewContext } from "node:vm";
import { done, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel, type Telemetry } from "@sluice/stages";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";

const greet = stage({
  prompt: "Greet.",
  allowedTools: [],
  completionTool: "submit",
  completionSchema: z.object({ text: z.string() }),
  turnCap: 1,
});
const greeting = pipeline({
  id: "greeting",
  input: z.object({}),
  stages: { greet },
  initial: "greet",
  next: { greet: ({ output }) => done(output.text) },
});
const broken = (): unknown => Promise.reject(new Error("the tracer is broken"));
/** Everything of it returns a promise, which the types allow, and nothing of it works. */
const rejecting: Telemetry = {
  run: () => ({
    sibling: () => rejecting.run({ runId: "", pipeline: "", kinds: new Map(), resumed: false, at: 0 }),
    attempt: broken,
    recorded: broken,
    within: broken,
    model: () => ({ within: broken, ended: broken }),
    tool: () => ({ within: broken, ended: broken }),
    ended: broken,
  }),
};

const ForeignPromise: PromiseConstructor = runInNewContext("Promise");
/** No `Promise` of this realm. */
const foreign = (): unknown => ForeignPromise.reject(new Error("the tracer is far away"));
const failingLater: Telemetry = {
  run: () => ({
    sibling: () => failingLater.run({ runId: "", pipeline: "", kinds: new Map(), resumed: false, at: 0 }),
    attempt: foreign,
    recorded: foreign,
    within: foreign,
    model: () => ({ within: foreign, ended: foreign }),
    tool: () => ({ within: foreign, ended: foreign }),
    ended: foreign,
  }),
};

const run = async (telemetry: Telemetry, onFault: (fault: unknown) => void) => {
  const model = scriptedModel({ stages: { greet: [{ calls: [{ tool: "submit", input: { text: "hi" } }] }] } });
  const session = createSession({ model, telemetry, onFault });
  onTestFinished(() => session.close());
  return await session.run(greeting, {});
};

test("telemetry whose promises reject ends neither the run nor the process, and is reported once", async () => {
  const faults: unknown[] = [];
  const result = await run(rejecting, (fault) => void faults.push(fault));
  expect(result).toMatchObject({ status: "completed", output: "hi" });
  expect(faults).toEqual([expect.objectContaining({ by: "telemetry", message: expect.stringContaining("broken") })]);
});

test("nor does telemetry whose promises are of another library", async () => {
  const faults: unknown[] = [];
  const result = await run(failingLater, (fault) => void faults.push(fault));
  expect(result).toMatchObject({ status: "completed", output: "hi" });
  await vi.waitFor(() => expect(faults).toHaveLength(1));
  expect(faults).toEqual([expect.objectContaining({ by: "telemetry", message: expect.stringContaining("far away") })]);
});

test("nor does a listener that throws when it is notified of that", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  const thrower = (): never => {
    throw new Error("the tracer is broken");
  };
  const result = await run({ run: thrower }, () => {
    throw new Error("nobody listens");
  });
  expect(result.status).toBe("completed");
  expect(warned).toHaveBeenCalledWith("nobody listens", "SluiceWarning");
});
