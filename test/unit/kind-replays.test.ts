import { done, type Json, type Pipeline, pipeline, to } from "@sluice/core";
import { human, replayRun, type Session, subPipeline, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { eventually, noModel, session } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const DAY = 24 * 3_600_000;

const inner = pipeline({
  id: "inner",
  input,
  stages: { wait: timer({ for: "1d" }), ask: human({ question: "Go on, {{ctx.task}}?", deadline: "2d" }) },
  initial: "wait",
  next: {
    wait: () => to("ask"),
    ask: { completed: ({ output }) => done(output), failed: ({ detail = null }) => done(detail) },
  },
});
const outer = pipeline({
  id: "outer",
  input,
  stages: { run: subPipeline({ pipeline: "inner", of: inner }) },
  initial: "run",
  pipelines: { inner },
  next: { run: ({ output }) => done(output) },
});

/** A run that has slept and has asked. In an object, since a run is awaited like a promise. */
async function asked(live: Session, turn: (ms: number) => void, made: Pipeline<{ task: string }, Json>) {
  const run = live.start(made, { task: "T" });
  await eventually(async () => (await live.host.list()).some(({ wakeAt }) => wakeAt !== undefined));
  turn(DAY);
  await eventually(async () => (await live.host.requests(run.runId)).length === 1);
  return { run };
}

describe("a replay of a run that slept and asked finds what was recorded", () => {
  test.each([
    ["with an answer", "yes"],
    ["without one at the deadline", { cause: "timeout" }],
    ["when it was cancelled", undefined],
  ] as const)("%s", async (_name, expected) => {
    const live = session({ model: noModel, wait: true });
    const { run } = await asked(live, (ms) => live.clock.turn(ms), outer);
    if (expected === "yes") {
      const [request] = await live.host.requests(run.runId);
      await live.answer(request ?? expect.fail(), { kind: "value", value: expected }, "Ada");
    } else if (expected === undefined) await run.cancel("enough");
    else live.clock.turn(2 * DAY);
    expect(await run).toMatchObject(expected === undefined ? { status: "cancelled" } : { output: expected });
    const journals = await live.host.journal(run.runId);
    const replayed = await replayRun(outer, journals, { env: {} });
    expect(replayed.divergence?.message).toBeUndefined();
  });

  test("when a person interrupted the sleep", async () => {
    const live = session({ model: noModel });
    const run = live.start(outer, { task: "T" });
    await eventually(() => live.clock.waiting() === 1);
    await run.interrupt("not now");
    const replayed = await replayRun(outer, await live.host.journal(run.runId), { env: {} });
    expect(replayed.divergence?.message).toBeUndefined();
  });

  test("and a changed question is a difference", async () => {
    const live = session({ model: noModel, wait: true });
    const { run } = await asked(live, (ms) => live.clock.turn(ms), inner);
    live.clock.turn(2 * DAY);
    await run;
    const changed = pipeline({
      id: "inner",
      input,
      stages: { wait: timer({ for: "1d" }), ask: human({ question: "Stop?", deadline: "2d" }) },
      initial: "wait",
      next: {
        wait: () => to("ask"),
        ask: { completed: ({ output }) => done(output), failed: ({ detail = null }) => done(detail) },
      },
    });
    const replayed = await replayRun(changed, await live.host.journal(run.runId), { env: {} });
    expect(replayed.divergence?.message).toContain("Stop?");
  });
});
