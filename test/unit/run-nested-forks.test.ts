import { final, fork, pipeline, state } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";

test("forks that lead to each other end at the caps of the run: a branch continues its parent's counts", async () => {
  const step = state({ kind: "step", output: z.string() });
  const forks = pipeline({
    id: "forks",
    input: z.object({}),
    stages: { one: step, two: step, end: final("completed") },
    initial: "one",
    transitions: [
      { from: "one", on: "success", to: fork({ x: { initial: "two", terminal: "end" } }, { onComplete: "end" }) },
      { from: "two", on: "success", to: fork({ y: { initial: "one", terminal: "end" } }, { onComplete: "end" }) },
    ],
  });
  const session = createSession({
    executors: [
      {
        kind: "step",
        act: async () => ({
          status: "completed",
          output: "done",
          turns: 0,
          usage: { inputTokens: 0, outputTokens: 0 },
        }),
      },
    ],
  });
  const result = await session.run(forks, {});
  await session.close();
  expect(result).toMatchObject({ status: "failed" });
  expect(JSON.stringify(result)).toContain("was entered 10 times");
});
