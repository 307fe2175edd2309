import { done, isSluiceError, type ProviderRetry, pipeline, stage } from "@sluice/core";
import type { RunResult } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { failingWorld, followed } from "../support/outage.ts";
import { dataOf, eventsOf } from "../support/run-kit.ts";
import type { ServerReply } from "../support/sse-server.ts";

const input = z.object({ task: z.string() });
const task = { task: "Find the bug." };
const down: ServerReply = { status: 503, error: { message: "no upstream" } };

function withRetry(retry: ProviderRetry) {
  const work = stage({
    prompt: "You find bugs.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: z.object({ summary: z.string() }),
    turnCap: 9,
  });
  return pipeline({
    id: "one",
    input,
    retry,
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}
const one = withRetry({ maxAttempts: 2 });

/** The second turn fails four times: two tries, a suspension, two tries, another suspension. */
async function brokenTwice() {
  let failures = 0;
  return await failingWorld("openai", ({ request }) => {
    const results = JSON.stringify(request.body).split('"function_call_output"').length - 1;
    if (results === 1 && failures < 4) {
      failures += 1;
      return down;
    }
    if (results < 2) return { calls: [{ name: "Look", input: { at: results } }] };
    return { calls: [{ name: "finish", input: { summary: "found it" } }] };
  });
}

type World = Awaited<ReturnType<typeof brokenTwice>>;

/** Resumes a run with processes of their own until it has ended. */
async function toItsEnd(world: World, runId: string): Promise<RunResult<unknown>> {
  for (;;) {
    const result = await followed(world.clock, world.process().resume(one, runId));
    if (result.status !== "suspended") return result;
    expect(result.reason).toBe("provider");
  }
}

const COMMITS = 12;

describe.each(["before", "after"] as const)("a process that dies %s a commit", (when) => {
  test.each(Array.from({ length: COMMITS }, (_, at) => at))("commit %i: the run continues there", async (at) => {
    const world = await brokenTwice();
    const handle = world.process({ host: world.mortalHost(at, when) }).start(one, task);
    const first = await followed(world.clock, handle).catch((thrown: unknown) => {
      if (!isSluiceError(thrown)) throw thrown;
      return undefined;
    });
    // The last commits are those of a run that was suspended.
    if (first !== undefined) expect(first).toMatchObject({ status: "suspended", reason: "provider" });
    expect(await toItsEnd(world, handle.runId)).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });

    const events = await eventsOf(world.host(), handle.runId);
    const answers = world.statuses.filter((status) => status === 200);
    // Only what was not recorded when the process died is asked for again.
    expect(answers.length).toBeLessThanOrEqual(when === "after" ? 3 : 4);
    expect(world.ran.length).toBeLessThanOrEqual(when === "after" ? 2 : 3);
    expect(dataOf(events, "turn.finished")).toHaveLength(3);
    expect(dataOf(events, "execution.suspended").length).toBe(dataOf(events, "execution.continued").length);
    expect(dataOf(events, "call.finished")).toHaveLength(2);
  });
});

test("the time of the retries counts from the first fault, over all processes", async () => {
  const world = await failingWorld("openai", () => down);
  const pipe = withRetry({ maxElapsedMs: 100_000, initialMs: 30_000, factor: 1 });
  const handle = world.process().start(pipe, task);
  // Dies in the middle of its first wait, after 20 of 30 seconds.
  for await (const { type } of handle.events) if (type === "model.retried") break;
  while (world.clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
  world.clock.turn(20_000);
  await handle.suspend();
  world.clock.turn(70_000);
  const result = await followed(world.clock, world.process().resume(pipe, handle.runId));
  expect(result).toMatchObject({ status: "suspended", reason: "provider" });
  // The wait is over when the process begins, and ten seconds are left for one more.
  expect(world.statuses).toHaveLength(3);
  const events = await eventsOf(world.host(), handle.runId);
  expect(dataOf(events, "model.retried").map(({ waitMs }) => waitMs)).toEqual([30_000, 10_000]);
});
