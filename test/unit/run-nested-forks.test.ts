import { final, fork, pipeline, state } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";

/** Runs forks whose states do nothing. */
async function runOf(width: number) {
  const step = state({ kind: "step", output: z.string() });
  const to = (initial: "one" | "two") => {
    const keys = Array.from({ length: width }, (_, index) => `b${index}`);
    const branches = Object.fromEntries(keys.map((key) => [key, { initial, terminal: "end" as const }]));
    return fork(branches, { onComplete: "end" });
  };
  const forks = pipeline({
    id: "forks",
    input: z.object({}),
    stages: { one: step, two: step, end: final("completed") },
    initial: "one",
    transitions: [
      { from: "one", on: "success", to: to("two") },
      { from: "two", on: "success", to: to("one") },
    ],
  });
  let executions = 0;
  const session = createSession({
    executors: [
      {
        kind: "step",
        act: async () => {
          executions += 1;
          return { status: "completed", output: "done", turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
        },
      },
    ],
  });
  onTestFinished(() => session.close());
  const result = await session.run(forks, {});
  return { result, executions };
}

test.each([
  [1, 5],
  [3, 121],
])("forks of %d branches that lead to each other end four deep, after at most %d executions", async (width, most) => {
  const { result, executions } = await runOf(width);
  expect(result.status).toBe("failed");
  expect(executions).toBeLessThanOrEqual(most);
  expect(JSON.stringify(result)).toContain("more than 4 forks are inside each other");
});
