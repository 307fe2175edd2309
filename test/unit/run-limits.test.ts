import { type AnyState, done, fanOut, pipeline, type RunLimits, stage } from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  tool,
  twoHosts,
  work,
} from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };
const never = new Promise<never>(() => undefined);

function one(state: AnyState, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input,
    limits,
    stages: { one: state },
    initial: "one",
    next: { one: () => done("done") },
  });
}
function forked(stages: Record<string, AnyState>, limits: RunLimits, onFailure: "cancel" | "settle" = "settle") {
  const all: Record<string, AnyState> = {
    ...stages,
    start: work(),
    join: work({ act: ({ ctx }) => completed(json(ctx.fork)) }),
  };
  return pipeline({
    id: "forked",
    input,
    limits,
    stages: all,
    initial: "start",
    next: {
      start: () => fanOut(Object.keys(stages), { join: "join", onFailure }),
      join: ({ output }) => done(output),
    },
  });
}

describe("a token cap", () => {
  const schema = z.object({});
  const state = (limits: { maxTokens?: number } = {}, maxOutputTokens?: number) =>
    stage({
      prompt: "p".repeat(400),
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: schema,
      turnCap: 50,
      limits,
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    });
  const look = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "x".repeat(400) }) });
  const looking = ({ turn }: { turn: number }): ScriptedTurn => ({ calls: [{ tool: "Look", input: { turn } }] });

  test("of a state ends it with code budget before the call that could pass it", async () => {
    const model = talker(looking);
    const live = session({ model, tools: [look] });
    const result = await live.run(one(state({ maxTokens: 3_000 }, 1_000)), task);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "budget" },
      stages: [{ detail: { limit: "state.maxTokens" } }],
    });
    const { inputTokens, outputTokens } = result.usage;
    expect(inputTokens + outputTokens).toBeLessThanOrEqual(3_000);
    // As many turns as fit: with the maximum of one more set aside, it would have been too many.
    expect(inputTokens + outputTokens).toBeGreaterThan(1_000);
    expect(result.stages[0]).toMatchObject({ turns: model.heard.length });
    expect(dataOf(await eventsOf(live.host, result.runId), "limit.reached")).toMatchObject([
      { limit: "state.maxTokens" },
    ]);
  });

  test("asks for a maximum of output where the stage names none, since only a maximum can be set aside", async () => {
    const model = talker(() => ({ calls: [{ tool: "finish", input: {} }] }));
    await session({ model, tools: [look] }).run(one(state({ maxTokens: 100_000 })), task);
    await session({ model, tools: [look] }).run(one(state()), task);
    expect(model.heard.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([8_192, undefined]);
  });

  test("of a run holds over its states and attempts", async () => {
    const model = talker(looking);
    const again = stage({
      prompt: "p",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: schema,
      turnCap: 2,
      maxOutputTokens: 500,
      retryPolicy: { maxAttempts: 30 },
      assert: () => ({ retry: "again" }),
    });
    const result = await session({ model, tools: [look] }).run(one(again, { maxTokens: 2_000 }), task);
    expect(result).toMatchObject({ status: "failed" });
    expect(JSON.stringify(result.stages)).toContain("2000 tokens");
    expect(result.usage.inputTokens + result.usage.outputTokens).toBeLessThanOrEqual(2_000);
  });

  test("of a run holds across siblings at work at once: what one has set aside is not there for another", async () => {
    const gates: (() => void)[] = [];
    const model = talker(async () => {
      await new Promise<void>((resolve) => gates.push(resolve));
      return { calls: [{ tool: "finish", input: {} }] };
    });
    const live = session({ model, maxParallel: 8, tools: [look] });
    const siblings = Object.fromEntries(["a", "b", "c", "d"].map((key) => [key, state({}, 1_000)]));
    const handle = live.start(forked(siblings, { maxTokens: 3_500 }), task);
    await quiet();
    // Room for two calls of a thousand tokens and their prompts, and no more, however few they will use in the end.
    expect(model.heard).toHaveLength(2);
    for (const open of gates) open();
    const result = await handle;
    expect(result).toMatchObject({ status: "completed" });
    const outcomes = result.stages.map((each) => (each.status === "failed" ? each.code : each.status));
    expect(outcomes.filter((code) => code === "budget")).toHaveLength(2);
  });

  test("of a sibling ends that sibling alone; the run's counts all of them, also after the join", async () => {
    const model = talker((heard) =>
      heard.stage === "big" ? looking(heard) : { calls: [{ tool: "finish", input: {} }] },
    );
    const live = session({ model, tools: [look] });
    const siblings = { big: state({ maxTokens: 2_000 }, 500), small: state({ maxTokens: 2_000 }, 500) };
    const result = await live.run(forked(siblings, { maxTokens: 100_000 }), task);
    expect(result).toMatchObject({
      status: "completed",
      stages: [{}, { code: "budget", detail: { limit: "state.maxTokens" } }, { status: "completed" }, {}],
    });
    const spent = result.usage.inputTokens + result.usage.outputTokens;
    const tight = await live.run(forked(siblings, { maxTokens: spent - 1 }), task);
    expect(JSON.stringify(tight.stages)).toContain("run.maxTokens");
    expect(tight.usage.inputTokens + tight.usage.outputTokens).toBeLessThan(spent);
  });

  test("continues from what was spent before when the run is resumed", async () => {
    const { clock, first, second } = twoHosts();
    const model = talker(looking);
    const pipe = one(state({}, 500), { maxTokens: 3_000 });
    // Stopped while a tool is at work: a call of the model that is under way would count with all that was set aside for it.
    let stopping = false;
    const slow = tool("Look", {
      effect: "read",
      execute: async (_input, { signal }) => {
        stopping = model.heard.length === 3;
        if (stopping) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return { ok: true, output: "x".repeat(400) };
      },
    });
    const here = session({ model, clock, host: first, tools: [slow] });
    const handle = here.start(pipe, task);
    await eventually(() => stopping);
    await handle.suspend();
    const after = talker(looking);
    const there = session({ model: after, clock, host: second, tools: [look] });
    const result = await there.resume(pipe, handle.runId);
    expect(result).toMatchObject({ status: "failed", error: { code: "budget" } });
    expect(result.usage.inputTokens + result.usage.outputTokens).toBeLessThanOrEqual(3_000);
    // One process alone would have stopped at the same turn.
    const alone = talker(looking);
    const single = await session({ model: alone, tools: [look] }).run(pipe, task);
    expect(result.stages[0]?.turns).toBe(single.stages[0]?.turns);
  });
});

describe("a time cap", () => {
  test("of a state aborts a model call under way, and fails with code timeout", async () => {
    const model = talker(() => never);
    const live = session({ model });
    const state = stage({
      prompt: "p",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 5,
      limits: { timeoutMs: 10_000 },
    });
    const handle = live.start(one(state), task);
    await eventually(() => model.heard.length === 1);
    live.clock.turn(9_999);
    await quiet();
    expect(await live.host.get(handle.runId)).toMatchObject({ status: "running" });
    live.clock.turn(1);
    expect(await handle).toMatchObject({
      status: "failed",
      error: { code: "timeout" },
      stages: [{ detail: { limit: "state.timeoutMs" } }],
    });
    expect(dataOf(await eventsOf(live.host, handle.runId), "limit.reached")).toMatchObject([
      { limit: "state.timeoutMs" },
    ]);
  });

  test("ends a tool at work, refuses the calls behind it, and is the stage's failure also when it completes", async () => {
    const log: string[] = [];
    const live = session({
      model: noModel,
      tools: [
        tool("Slow", {
          execute: async (_input, { signal }) => {
            await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
            log.push("Slow was aborted");
            return { ok: false, output: "cut" };
          },
        }),
        tool("Next", { execute: async () => ({ ok: true, output: log.push("Next ran") }) }),
      ],
    });
    const state = work({
      allowedTools: ["Slow", "Next"],
      limits: { timeoutMs: 5_000 },
      act: async (scope) => {
        const outcomes = await scope.calls(1, [
          { id: "t1.c0", tool: "Slow", input: {} },
          { id: "t1.c1", tool: "Next", input: {} },
        ]);
        log.push(JSON.stringify(outcomes[1]?.output));
        return completed("all done");
      },
    });
    const handle = live.start(one(state), task);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(5_000);
    const result = await handle;
    expect(log[0]).toBe("Slow was aborted");
    expect(log[1]).toContain('"cause":"limit"');
    expect(log).toHaveLength(2);
    expect(result).toMatchObject({ status: "failed", error: { code: "timeout" } });
  });

  test.each(["setup", "precondition", "assert"] as const)("ends a %s hook that hangs", async (hook) => {
    const live = session({ model: noModel });
    const state = work({ limits: { timeoutMs: 2_000 }, [hook]: () => never });
    const handle = live.start(one(state), task);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(2_000);
    expect(await handle).toMatchObject({ status: "failed", error: { code: "timeout" } });
    expect(dataOf(await eventsOf(live.host, handle.runId), "limit.reached")).toMatchObject([
      { limit: "state.timeoutMs" },
    ]);
  });

  test("does not count waiting for people, for a timer, for a gate or for a place", async () => {
    const live = session({ model: noModel, wait: true, maxParallel: 1, tools: [tool("Deploy")] });
    let gated = false;
    const state = work({
      allowedTools: [],
      limits: { timeoutMs: 1_000 },
      precondition: () => {
        if (gated) return "proceed";
        gated = true;
        return { retryAfterMs: 50_000 };
      },
      act: async (scope) => {
        await scope.wait("nap", live.clock.now() + 60_000);
        return completed(await caller(scope)("Deploy"));
      },
    });
    const handle = live.start(one(state, { timeoutMs: 1_000 }), task);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(50_000);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(60_000);
    await eventually(async () => (await live.host.requests()).length === 1);
    live.clock.turn(70_000);
    const [request] = await live.host.requests();
    const payload = { kind: "approve", digest: request?.digest ?? "" };
    await live.host.signal(handle.runId, { name: `request/${request?.requestId}`, payload, by: "me" });
    // The whole time is in the result's milliseconds: only the caps do not count it.
    expect(await handle).toMatchObject({ status: "completed", stages: [{ ms: 180_000 }] });
  });

  test("of a run holds across siblings: its clock runs while any of them works", async () => {
    const live = session({ model: noModel, maxParallel: 2 });
    const sleepy = (ms: number) =>
      work({
        act: async ({ deadline, signal }) => {
          const outcome = await deadline.timed(signal, async (timed) => {
            await new Promise<void>((resolve) => {
              const disarm = live.clock.after(ms, resolve);
              timed.addEventListener("abort", () => {
                disarm();
                resolve();
              });
            });
            return timed.aborted ? "aborted" : "slept";
          });
          const hit = deadline.exceeded();
          return hit === undefined
            ? completed(outcome)
            : {
                status: "failed",
                code: hit.code,
                message: hit.message,
                turns: 0,
                usage: { inputTokens: 0, outputTokens: 0 },
              };
        },
      });
    const handle = live.start(
      forked({ a: sleepy(3_000), b: sleepy(3_000), c: sleepy(3_000) }, { timeoutMs: 5_000 }),
      task,
    );
    for (let ms = 0; ms < 6_000; ms += 500) {
      await quiet();
      live.clock.turn(500);
    }
    // Two side by side take three seconds, not six; the third is cut two seconds later.
    expect(await handle).toMatchObject({
      status: "failed",
      stages: [{}, { status: "completed" }, { status: "completed" }, { status: "failed", code: "timeout" }, {}],
    });
  });

  test("continues from what was worked before when the run is resumed", async () => {
    const { clock, first, second } = twoHosts();
    const state = stage({
      prompt: "p",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 9,
      limits: { timeoutMs: 10_000 },
    });
    const look = tool("Look", { effect: "read" });
    const slow = talker(async ({ turn }) => {
      if (turn === 1) await never;
      await new Promise<void>((resolve) => void clock.after(6_000, resolve));
      return { calls: [{ tool: "Look", input: {} }] };
    });
    const pipe = one(state);
    const here = session({ model: slow, clock, host: first, tools: [look] });
    const handle = here.start(pipe, task);
    await eventually(() => slow.heard.length === 1 && clock.waiting() === 3);
    clock.turn(6_000);
    await eventually(() => slow.heard.length === 2);
    await handle.suspend();
    clock.turn(1_000_000);
    const after = talker(() => never);
    const there = session({ model: after, clock, host: second, tools: [look] });
    const resumed = there.resume(pipe, handle.runId);
    await eventually(() => after.heard.length === 1);
    clock.turn(3_999);
    await quiet();
    expect(await second.get(handle.runId)).toMatchObject({ status: "running" });
    clock.turn(1);
    expect(await resumed).toMatchObject({ status: "failed", error: { code: "timeout" } });
  });
});
