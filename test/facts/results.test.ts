import { done, pipeline, to } from "@sluice/core";
import { expect } from "vitest";
import { calls, decided, drive, fact, finish, input, noting, saying, worker } from "../support/facts.ts";
import { dataOf, phasesOf, quiet } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

fact(31, "assert says ok, retry or fail, and precondition skip: each is what the stage's result says", async () => {
  const ended = async (options: Parameters<typeof worker>[0]) =>
    (await drive(worker(options), saying())).result.stages[0];
  expect(await ended({ assert: () => "ok" })).toMatchObject({ status: "completed", attempts: 1 });
  expect(await ended({ assert: () => ({ fail: "not good" }) })).toMatchObject({
    status: "failed",
    code: "assert",
    message: expect.stringContaining("not good"),
  });
  expect(await ended({ assert: (_, { attempt }) => (attempt < 2 ? { retry: "more" } : "ok") })).toMatchObject({
    status: "completed",
    attempts: 2,
  });
  expect(await ended({ precondition: () => "skip" })).toMatchObject({ status: "skipped" });
});

fact(
  33,
  "a retry is the next attempt on a fresh transcript with the feedback, at most maxAttempts times, then a failure",
  async () => {
    const state = worker({
      retryPolicy: { maxAttempts: 2 },
      assert: (_result, { attempt }) => ({ retry: `feedback ${attempt}` }),
    });
    const { result, heard, events } = await drive(state, saying(calls("Look")));
    expect(result).toMatchObject({ status: "failed", error: { code: "assert" }, stages: [{ attempts: 2, turns: 3 }] });
    expect(heard.map(({ messages }) => messages.length)).toEqual([2, 4, 2]);
    expect(JSON.stringify(heard[2]?.messages)).toContain("feedback 1");
    expect(JSON.stringify(heard[2]?.messages)).not.toContain("saw");
    expect(events.filter(({ type }) => type === "attempt.started").map(({ attempt }) => attempt)).toEqual([1, 2]);
  },
);

fact(34, "a failed stage stops the pipeline: what would have come next is never entered", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker({ assert: () => ({ fail: "no" }) }), work: worker() },
    initial: "plan",
    next: { plan: () => to("work"), work: () => done(1) },
  });
  const { result, heard } = await drive(pipe, saying());
  expect([result.status, heard.map(({ stage }) => stage)]).toEqual(["failed", ["plan"]]);
});

fact(35, "a route leads on to one state, to several side by side with a join, or ends the run", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker(), test: worker(), lint: worker(), review: worker() },
    initial: "plan",
    next: {
      plan: () => ({ stages: ["test", "lint"], execution: "parallel", join: "review" }),
      review: (_result, { visit }) => (visit === 1 ? { stages: ["review"], execution: "sequential" } : done("ended")),
    },
  });
  const { result } = await drive(
    pipe,
    talker(() => finish()),
  );
  expect(result).toMatchObject({ status: "completed", output: "ended" });
  expect(result.stages.map(({ executionId }) => executionId)).toEqual([
    "plan#1",
    "test#1",
    "lint#1",
    "review#1",
    "review#2",
  ]);
});

fact(36, "a stage begins when the exit of the one before it has ended", async () => {
  const log: string[] = [];
  const exit = async (): Promise<void> => {
    await quiet();
    log.push("plan has left");
  };
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker({ exit }), work: worker({ setup: () => noting(log, "work begins", null) }) },
    initial: "plan",
    next: { plan: () => to("work"), work: () => done(1) },
  });
  await drive(
    pipe,
    talker(() => finish()),
  );
  expect(log).toEqual(["plan has left", "work begins"]);
});

fact(37, "a route sees the stage's result with its payload", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker() },
    initial: "plan",
    next: { plan: ({ output, turns, executionId }) => done({ ...output, turns, executionId }) },
  });
  const { result } = await drive(pipe, saying(calls("Look"), finish("the payload")));
  expect(result).toMatchObject({ output: { summary: "the payload", turns: 2, executionId: "plan#1" } });
});

decided(
  38,
  "a turn is one model call; a stage has one walk of phases, however many turns and attempts it takes",
  async () => {
    const state = worker({ assert: (_result, { attempt }) => (attempt === 1 ? { retry: "more" } : "ok") });
    const { events, heard } = await drive(state, saying(calls("Look")));
    expect(dataOf(events, "turn.started")).toHaveLength(heard.length);
    expect(dataOf(events, "turn.finished")).toHaveLength(heard.length);
    const phases = phasesOf(events);
    expect(phases.filter((phase) => phase === "stage.exit entered")).toHaveLength(1);
    expect(phases.filter((phase) => phase === "stage.act entered")).toHaveLength(2);
  },
);

fact(39, "an empty list of stages ends the run with the last stage's output", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker() },
    initial: "plan",
    next: { plan: () => ({ stages: [], execution: "sequential" }) },
  });
  expect((await drive(pipe, saying(finish("last")))).result).toMatchObject({
    status: "completed",
    output: { summary: "last" },
  });
});
