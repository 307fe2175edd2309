import { done, pipeline, type StageOptions, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { failingWorld, followed, START } from "../support/outage.ts";
import { dataOf, eventsOf } from "../support/run-kit.ts";
import type { ServerReply } from "../support/sse-server.ts";

const input = z.object({ task: z.string() });
const task = { task: "Find the bug." };
const schema = z.object({ summary: z.string() });
const finish: ServerReply = { calls: [{ name: "finish", input: { summary: "found it" } }] };
const look = (at: number): ServerReply => ({ calls: [{ name: "Look", input: { at } }] });
const down: ServerReply = { status: 503, error: { message: "no upstream" } };

function one(options: Partial<StageOptions<Record<never, never>, z.infer<typeof schema>, undefined>> = {}) {
  const work = stage({
    prompt: "You find bugs.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: schema,
    turnCap: 9,
    ...options,
  });
  return pipeline({
    id: "one",
    input,
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}

/** Two calls of Look, then the end. */
const story = (answered: number): ServerReply => (answered < 2 ? look(answered) : finish);

describe.each(["anthropic", "openai"] as const)("a stage over %s", (provider) => {
  test("survives an outage of a minute in its middle", async () => {
    const back = START + 60_000;
    const world = await failingWorld(provider, ({ answered, now }) =>
      answered === 1 && now < back ? down : story(answered),
    );
    const live = world.process();
    const result = await followed(world.clock, live.start(one(), task));
    expect(result).toMatchObject({ status: "completed", output: { summary: "found it" }, stages: [{ turns: 3 }] });
    expect(world.statuses).toEqual([200, 503, 503, 503, 503, 503, 503, 200, 200]);
    expect(world.ran).toEqual([{ at: 0 }, { at: 1 }]);
    expect(world.clock.now()).toBe(START + 63_000);
  });

  test("is suspended by a longer one, and continues in its middle when the run is resumed", async () => {
    let isDown = true;
    const world = await failingWorld(provider, ({ answered }) => (answered === 1 && isDown ? down : story(answered)));
    const handle = world.process().start(one(), task);
    const suspended = await followed(world.clock, handle);
    expect(suspended).toMatchObject({
      status: "suspended",
      reason: "provider",
      suspended: { reason: "provider", code: "overloaded", message: expect.stringContaining("HTTP 503") },
    });
    expect(world.clock.now()).toBe(START + 300_000);
    expect(await world.host().get(handle.runId)).toMatchObject({
      status: "suspended",
      suspended: "provider",
      faults: [{ executionId: "work#1", code: "overloaded" }],
    });
    const before = world.statuses.length;
    isDown = false;
    const live = world.process();
    const result = await live.resume(one(), handle.runId);
    expect(result).toMatchObject({ status: "completed", stages: [{ turns: 3, attempts: 1 }] });
    expect(world.statuses.slice(before)).toEqual([200, 200]);
    expect(world.ran).toEqual([{ at: 0 }, { at: 1 }]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "execution.suspended")).toMatchObject([{ reason: "provider", code: "overloaded" }]);
    expect(dataOf(events, "execution.continued")).toEqual([{ by: "resume" }]);
    expect(dataOf(events, "run.suspended")).toMatchObject([{ reason: "provider", faults: [{ code: "overloaded" }] }]);
  });

  test("counts its tries anew after each resume", async () => {
    const world = await failingWorld(provider, () => down);
    const retry = { maxAttempts: 2, initialMs: 500 };
    const first = world.process({ retry }).start(one(), task);
    await followed(world.clock, first);
    expect(world.statuses).toHaveLength(2);
    for (const tries of [4, 6]) {
      const result = await followed(world.clock, world.process({ retry }).resume(one(), first.runId));
      expect(result).toMatchObject({ status: "suspended", reason: "provider" });
      expect(world.statuses).toHaveLength(tries);
    }
  });
});
