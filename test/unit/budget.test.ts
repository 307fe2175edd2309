import { writeFileSync } from "node:fs";
import {
  type AnyState,
  done,
  fanOut,
  pipeline,
  type RunLimits,
  type StateLimits,
  type StepCost,
  stage,
} from "@sluice/core";
import { scriptedModel, subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Billed, billedModel, type Used } from "../support/billed-model.ts";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  noModel,
  quiet,
  session,
  tool,
  twoHosts,
  work,
} from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };
/** A dollar for a thousand tokens in, ten for a thousand out. */
const PRICE = { input: 1_000, output: 10_000 };
const prices = { "billed/model": PRICE };
const look = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "x".repeat(300) }) });
const tools = [look];

const answers = (tool: string, given: object, used?: Used): Billed => ({
  kind: "answer",
  tool,
  input: given,
  ...(used === undefined ? {} : { used }),
});
const looks = (used?: Used, turn = 0): Billed => answers("Look", { turn }, used);
const finishes = (used?: Used): Billed => answers("finish", {}, used);

function state(limits: StateLimits = {}, more: { maxOutputTokens?: number; model?: string; turnCap?: number } = {}) {
  return stage({
    prompt: "p",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 50,
    limits,
    ...more,
  });
}
function one(only: AnyState, limits: RunLimits = {}) {
  return pipeline({ id: "one", input, limits, stages: { one: only }, initial: "one", next: { one: () => done("ok") } });
}
function forked(siblings: Record<string, AnyState>, limits: RunLimits) {
  const stages: Record<string, AnyState> = { ...siblings, start: work(), join: work() };
  return pipeline({
    id: "forked",
    input,
    limits,
    stages,
    initial: "start",
    next: {
      start: () => fanOut(Object.keys(siblings), { join: "join", onFailure: "settle" }),
      join: () => done("ok"),
    },
  });
}

describe("what calls cost", () => {
  test("is what went in, came from the cache, was written to it and came out, each at its own price", async () => {
    const model = billedModel(() => finishes({ input: 1_000, output: 100, cacheRead: 300, cacheWrite: 200 }));
    const own = { "billed/model": { input: 2, output: 10, cacheRead: 0.5, cacheWrite: 3 } };
    const live = session({ model, tools, prices: own });
    const result = await live.run(one(state()), task);
    // (500 × 2 + 300 × 0.5 + 200 × 3 + 100 × 10) dollars for a million.
    const usage = { inputTokens: 1_000, outputTokens: 100, costUsd: 0.00275 };
    expect(result.usage).toEqual(usage);
    expect(result.stages[0]?.usage).toEqual(usage);
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "turn.finished")).toMatchObject([{ usage }]);
    expect(dataOf(events, "run.finished")).toMatchObject([{ usage }]);
  });

  test("is that of a long prompt for the whole call, from the token after the limit on", async () => {
    const longPrompt = { over: 1_000, input: 4, output: 20 };
    const own = { "billed/model": { input: 2, output: 10, longPrompt } };
    const costs = await Promise.all(
      [1_000, 1_001].map(async (long) => {
        const model = billedModel(() => finishes({ input: long, output: 100 }));
        return (await session({ model, tools, prices: own }).run(one(state()), task)).usage.costUsd;
      }),
    );
    expect(costs).toEqual([0.003, 0.006004]);
  });

  test("is added up exactly over turns, states and siblings", async () => {
    let turn = 0;
    const model = billedModel(() => {
      turn += 1;
      return turn % 3 === 0 ? finishes({ input: 1, output: 0 }) : looks({ input: 1, output: 0 }, turn);
    });
    const own = { "billed/model": { input: 0.1, output: 0 } };
    const siblings = { a: state(), b: state(), c: state() };
    const live = session({ model, tools, prices: own, maxParallel: 1 });
    const { usage, stages } = await live.run(forked(siblings, {}), task);
    // Nine times a ten-millionth of a dollar, without a digit that adding fractions leaves.
    expect(usage).toEqual({ inputTokens: 9, outputTokens: 0, costUsd: 0.0000009 });
    expect(stages.map((each) => each.usage.costUsd)).toEqual([undefined, 3e-7, 3e-7, 3e-7, undefined]);
  });

  test("is said not to be known where it is not: per call, beside what is known", async () => {
    const model = billedModel(({ turn }) =>
      turn === 0 ? looks({ input: 5, output: 1 }) : finishes({ input: 7, output: 1 }),
    );
    const { usage } = await session({ model, tools }).run(one(state()), task);
    expect(usage).toEqual({ inputTokens: 12, outputTokens: 2, unpricedCalls: 2 });
  });

  test("is nothing for a scripted model", async () => {
    const model = scriptedModel({ stages: { one: [{ calls: [{ tool: "finish", input: {} }] }] } });
    const { usage } = await session({ model, tools }).run(one(state(), { maxCostUsd: 0.000001 }), task);
    expect(usage).toMatchObject({ costUsd: 0 });
    expect(usage.unpricedCalls).toBeUndefined();
  });
});

describe("a cap on money", () => {
  test("of a state ends it with code budget before the call that could pass it", async () => {
    const model = billedModel(({ turn }) => looks({ input: 100, output: 50 }, turn));
    const live = session({ model, tools, prices });
    const result = await live.run(one(state({ maxCostUsd: 5 }, { maxOutputTokens: 100 })), task);
    expect(result).toMatchObject({ status: "failed", error: { code: "budget" } });
    // 0.6 dollars a turn, and more than a dollar must be free for the next.
    expect(result.usage.costUsd).toBeLessThanOrEqual(5);
    expect(result.usage.costUsd).toBeGreaterThan(3);
    expect(result.stages[0]).toMatchObject({
      turns: model.asked.length,
      detail: { limit: "state.maxCostUsd", max: 5, used: result.usage.costUsd, reserved: 0 },
    });
    const reached = dataOf(await eventsOf(live.host, result.runId), "limit.reached");
    expect(reached).toMatchObject([{ limit: "state.maxCostUsd", max: 5, used: result.usage.costUsd }]);
    expect(reached[0]?.requested).toBeGreaterThan(1);
  });

  test("sets a prompt aside at the dearest of its prices, since no one knows what a cache will do with it", async () => {
    const run = async (cacheWrite: number) => {
      const model = billedModel(() => finishes({ input: 10, output: 1 }));
      const own = { "billed/model": { ...PRICE, cacheWrite } };
      const live = session({ model, tools, prices: own });
      return await live.run(one(state({ maxCostUsd: 5 }, { maxOutputTokens: 1 })), task);
    };
    expect(await run(1_000)).toMatchObject({ status: "completed" });
    expect(await run(100_000)).toMatchObject({ status: "failed", error: { code: "budget" } });
  });

  test("reckons with the tools, which go with every prompt", async () => {
    const run = async (description: string) => {
      const model = billedModel(() => finishes({ input: 10, output: 1 }));
      const long = tool("Look", { effect: "read", description });
      const live = session({ model, tools: [long], prices });
      return await live.run(one(state({ maxCostUsd: 5 }, { maxOutputTokens: 1 })), task);
    };
    expect(await run("Looks.")).toMatchObject({ status: "completed" });
    expect(await run("Looks. ".repeat(3_000))).toMatchObject({ status: "failed", error: { code: "budget" } });
  });

  test("of a run holds across siblings at work at once: what one has set aside is not there for another", async () => {
    const gates: (() => void)[] = [];
    const model = billedModel(async () => {
      await new Promise<void>((resolve) => gates.push(resolve));
      return finishes({ input: 10, output: 1 });
    });
    const live = session({ model, tools, prices, maxParallel: 8 });
    const siblings = Object.fromEntries(
      ["a", "b", "c", "d"].map((key) => [key, state({}, { maxOutputTokens: 1_000 })]),
    );
    const handle = live.start(forked(siblings, { maxCostUsd: 25 }), task);
    await quiet();
    // Ten dollars of output and a little for the prompt: two fit, however little they will use in the end.
    expect(model.asked).toHaveLength(2);
    for (const open of gates) open();
    const result = await handle;
    const outcomes = result.stages.map((each) => (each.status === "failed" ? each.detail : each.status));
    expect(outcomes.filter((each) => each !== "completed")).toMatchObject([
      { limit: "run.maxCostUsd" },
      { limit: "run.maxCostUsd" },
    ]);
    expect(result.usage).toMatchObject({ costUsd: 0.04 });
  });

  test("frees what a call did not use for the next one", async () => {
    const model = billedModel(({ turn }) =>
      turn < 20 ? looks({ input: 1, output: 0 }, turn) : finishes({ input: 1, output: 0 }),
    );
    const live = session({ model, tools, prices });
    const result = await live.run(one(state({}, { maxOutputTokens: 100 }), { maxCostUsd: 6 }), task);
    expect(result).toMatchObject({ status: "completed", usage: { costUsd: 0.021 } });
  });

  test("fails also what came to its end when the last call used more than was set aside for it", async () => {
    const model = billedModel(() => finishes({ input: 1_000_000, output: 1 }));
    const live = session({ model, tools, prices });
    const result = await live.run(one(state({ maxCostUsd: 90 })), task);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "budget" },
      stages: [{ detail: { limit: "state.maxCostUsd", max: 90, used: 1000.01 } }],
    });
    expect(dataOf(await eventsOf(live.host, result.runId), "limit.reached")).toHaveLength(1);
  });

  test("keeps a model without a price from being asked at all, and names each of them", async () => {
    const live = session({ model: billedModel(() => finishes()), tools });
    const error = await live.run(one(state(), { maxCostUsd: 1 }), task).then(
      () => expect.unreachable(),
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ class: "Session", code: "price_unknown", detail: { models: ["billed/model"] } });
    expect(String(error)).toContain('{ "billed/model": { input: …, output: … } }');
    expect(await live.host.list()).toEqual([]);
  });

  test("of one state asks for the price of that state's model only", async () => {
    const model = billedModel(() => finishes({ input: 5, output: 1 }));
    const script = '{ "stages": { "b": [{ "calls": [{ "tool": "finish", "input": {} }] }] } }';
    const folder = tempFolder();
    writeFileSync(`${folder.root}/model.json`, script);
    const capped = state({ maxCostUsd: 1 }, { model: `scripted:${folder.root}/model.json` });
    const live = session({ model, tools });
    const result = await live.run(forked({ a: state(), b: capped }, {}), task);
    expect(result).toMatchObject({ status: "completed", usage: { unpricedCalls: 1, costUsd: 0 } });
  });

  test("of a state that runs a pipeline asks for the prices of all models of that pipeline", async () => {
    const inner = one(state());
    const around = (id: string, called: typeof inner, limits: StateLimits) =>
      pipeline({
        id,
        input,
        pipelines: { called },
        stages: { one: subPipeline({ pipeline: "called", input: task, limits }) },
        initial: "one",
        next: { one: () => done("ok") },
      });
    const capped = (limits: StateLimits) => around("outer", around("middle", inner, {}), limits);
    const model = billedModel(() => finishes({ input: 5, output: 1 }));
    const live = session({ model, tools });
    expect(await live.run(capped({ maxTokens: 100_000 }), task)).toMatchObject({ status: "completed" });
    await expect(live.run(capped({ maxCostUsd: 1 }), task)).rejects.toMatchObject({
      code: "price_unknown",
      detail: { models: ["billed/model"] },
    });
  });

  test("refuses an executor that cannot say what its call may cost", async () => {
    const spends = work({
      limits: { maxCostUsd: 5 },
      act: async ({ steps, budget }) => {
        const most = { inputTokens: 5, outputTokens: 5 };
        const asks = (id: string, costUsd: object, cost?: StepCost) =>
          steps.run(id, () => budget.reserve({ ...most, ...costUsd })?.message ?? "ok", { cost: () => cost });
        const blind = await asks("blind", {});
        const priced = await asks("priced", { costUsd: 1 }, { inputTokens: 5, outputTokens: 0 });
        return completed([blind, priced, await asks("after", { costUsd: 1 })]);
      },
    });
    const { stages } = await session({ model: noModel }).run(one(spends), task);
    expect(stages).toMatchObject([
      {
        output: [
          "this state may cost $5.00: the price of the next call is not known",
          "ok",
          "this state may cost $5.00: the price of an earlier call is not known",
        ],
      },
    ]);
  });
});

test("what an executor's step reserves counts as used if the step has no cost, and is free again if it has one", async () => {
  const spends = work({
    act: async ({ steps, budget }) => {
      const outcomes: string[] = [];
      for (const [index, used] of (["none", "none", "all", "none", "all", "none"] as const).entries()) {
        const call = (): string => budget.reserve({ inputTokens: 10, outputTokens: 0, costUsd: 1 })?.limit ?? "ok";
        const cost = used === "all" ? {} : { cost: () => ({ inputTokens: 0, outputTokens: 0 }) };
        outcomes.push(await steps.run(`call/${index}`, call, cost));
      }
      return completed(outcomes);
    },
  });
  const { stages } = await session({ model: noModel }).run(one(spends, { maxCostUsd: 2 }), task);
  expect(stages).toMatchObject([{ output: ["ok", "ok", "ok", "ok", "ok", "run.maxCostUsd"] }]);
});

describe("calls that do not say what they used", () => {
  const capped = { maxCostUsd: 100, maxTokens: 100_000 };
  const settled = async (say: (turn: number, attempt: number) => Billed, limits: RunLimits) => {
    const model = billedModel(({ turn, attempt }) => say(turn, attempt));
    const live = session({ model, tools, prices });
    const handle = live.start(one(state({}, { maxOutputTokens: 1_000 }), limits), task);
    let over = false;
    handle.then(
      () => (over = true),
      () => (over = true),
    );
    while (!over) {
      await quiet();
      live.clock.turn(60_000);
    }
    return { result: await handle, live };
  };

  test("count with all that was set aside where a cap holds: an answer that is cut", async () => {
    const cutOnce = (_turn: number, attempt: number): Billed =>
      attempt === 1 ? { kind: "cut" } : finishes({ input: 50, output: 10 });
    const { result, live } = await settled(cutOnce, capped);
    const { inputTokens, outputTokens, costUsd = 0, unmeteredCalls } = result.usage;
    expect(result.status).toBe("completed");
    expect(unmeteredCalls).toBe(1);
    expect(outputTokens).toBe(1_010);
    expect(inputTokens).toBeGreaterThan(50);
    expect(costUsd).toBeCloseTo(inputTokens / 1_000 + outputTokens / 100, 9);
    expect(result.stages[0]?.usage).toEqual(result.usage);
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "stage.exit").at(-1)).toMatchObject({ usage: result.usage });
  });

  test("count with all that was set aside where a cap holds: a provider that reports nothing, or no prompt", async () => {
    for (const used of [undefined, { input: 0, output: 10 }]) {
      const { result } = await settled(() => finishes(used), capped);
      expect(result.usage).toMatchObject({ outputTokens: 1_000, unmeteredCalls: 1 });
      expect(result.usage.costUsd).toBeGreaterThan(10);
    }
  });

  test("end a stage whose answers are always cut at its cap, on money and on tokens", async () => {
    for (const limits of [{ maxCostUsd: 25 }, { maxTokens: 2_900 }]) {
      const { result } = await settled(() => ({ kind: "cut" }), limits);
      // Two tries fit; the third is not made.
      expect(result).toMatchObject({ status: "failed", error: { code: "budget" }, usage: { unmeteredCalls: 2 } });
      expect(result.usage.costUsd).toBeLessThanOrEqual(25);
    }
  });

  test("count as nothing without a cap, and are said to be there", async () => {
    const { result } = await settled(
      (_turn, attempt) => (attempt === 1 ? { kind: "cut" } : finishes({ input: 50, output: 10 })),
      {},
    );
    expect(result.usage).toEqual({ inputTokens: 50, outputTokens: 10, costUsd: 0.15, unmeteredCalls: 1 });
  });

  test("are not those that the provider refused", async () => {
    const say = (_turn: number, attempt: number): Billed =>
      attempt < 3 ? { kind: "refused", status: attempt === 1 ? 429 : 529 } : finishes({ input: 50, output: 10 });
    const { result } = await settled(say, capped);
    expect(result.usage).toEqual({ inputTokens: 50, outputTokens: 10, costUsd: 0.15 });
    const { result: wrongKey } = await settled(() => ({ kind: "refused", status: 401 }), capped);
    expect(wrongKey).toMatchObject({ error: { code: "model" }, usage: { inputTokens: 0, outputTokens: 0 } });
    expect(wrongKey.usage.unmeteredCalls).toBeUndefined();
  });

  test("are those that a gateway gave up waiting for", async () => {
    const say = (_turn: number, attempt: number): Billed =>
      attempt === 1 ? { kind: "refused", status: 504 } : finishes({ input: 50, output: 10 });
    const { result } = await settled(say, capped);
    expect(result.usage).toMatchObject({ unmeteredCalls: 1, outputTokens: 1_010 });
  });

  test("are those that a cancel stopped", async () => {
    const model = billedModel(() => ({ kind: "hang" }));
    const live = session({ model, tools, prices });
    const handle = live.start(one(state({}, { maxOutputTokens: 1_000 }), capped), task);
    await eventually(() => model.asked.length === 1);
    await handle.cancel("enough");
    expect(await handle).toMatchObject({ status: "cancelled", usage: { outputTokens: 1_000, unmeteredCalls: 1 } });
  });
});

describe("when a run is resumed", () => {
  const capped = one(state({}, { maxOutputTokens: 1_000 }), { maxCostUsd: 60 });

  test("what was spent stays what it cost then, whatever prices say now", async () => {
    const { clock, first, second } = twoHosts();
    const before = billedModel(({ turn }) =>
      turn < 2 ? looks({ input: 1_000, output: 100 }, turn) : { kind: "hang" },
    );
    const here = session({ model: before, tools, prices, clock, host: first });
    const pipe = one(state({}, { maxOutputTokens: 1_000 }));
    const handle = here.start(pipe, task);
    await eventually(() => before.asked.length === 3);
    await handle.suspend();
    const after = billedModel(() => finishes({ input: 1_000, output: 100 }));
    const cheaper = { "billed/model": { input: 1, output: 1 } };
    const there = session({ model: after, tools, prices: cheaper, clock, host: second });
    const { usage } = await there.resume(pipe, handle.runId);
    expect(usage.costUsd).toBe(2 + 2 + 0.0011);
  });

  test("a call that its process did not live to record counts with all that was set aside, once for each time", async () => {
    const { clock, first, second } = twoHosts();
    const hanging = () => billedModel(() => ({ kind: "hang" }));
    const one_ = hanging();
    const handle = session({ model: one_, tools, prices, clock, host: first }).start(capped, task);
    await eventually(() => one_.asked.length === 1);
    await handle.suspend();
    const two = hanging();
    const again = session({ model: two, tools, prices, clock, host: second }).resume(capped, handle.runId);
    await eventually(() => two.asked.length === 1);
    await again.suspend();
    const three = billedModel(() => finishes({ input: 100, output: 10 }));
    const last = session({ model: three, tools, prices, clock, host: first });
    const result = await last.resume(capped, handle.runId);
    expect(result).toMatchObject({ status: "completed", usage: { unmeteredCalls: 2, outputTokens: 2_010 } });
    expect(result.stages[0]).toMatchObject({ turns: 1 });
    // A script goes on where it was: a lost call is no try of its own.
    expect([one_, two, three].map(({ asked }) => asked[0]?.attempt)).toEqual([1, 1, 1]);
    const tries = dataOf(await eventsOf(last.host, handle.runId), "turn.started").map((data) => data.try);
    expect(tries).toEqual([1, 2, 3]);
  });

  test("lost calls use up a cap like any other", async () => {
    const { clock, first, second } = twoHosts();
    const pipe = one(state({}, { maxOutputTokens: 1_000 }), { maxCostUsd: 15 });
    const model = billedModel(() => ({ kind: "hang" }));
    const handle = session({ model, tools, prices, clock, host: first }).start(pipe, task);
    await eventually(() => model.asked.length === 1);
    await handle.suspend();
    const after = billedModel(() => finishes({ input: 1, output: 1 }));
    const result = await session({ model: after, tools, prices, clock, host: second }).resume(pipe, handle.runId);
    expect(result).toMatchObject({ status: "failed", error: { code: "budget" }, usage: { unmeteredCalls: 1 } });
    expect(after.asked).toEqual([]);
  });

  test("a cap that was added over calls without a price is refused, since no one knows what is left of it", async () => {
    const { clock, first, second } = twoHosts();
    const model = billedModel(({ turn }) => (turn === 0 ? looks({ input: 5, output: 1 }) : { kind: "hang" }));
    const handle = session({ model, tools, clock, host: first }).start(one(state()), task);
    await eventually(() => model.asked.length === 2);
    await handle.suspend();
    const there = session({ model, tools, prices, clock, host: second });
    const resumed = there.resume(one(state(), { maxCostUsd: 5 }), handle.runId, { allowChanged: true });
    await expect(resumed).rejects.toMatchObject({ code: "price_unknown", detail: { models: ["billed/model"] } });
  });
});

describe("the maximum of output", () => {
  test.each([
    ["the default where a cap holds", {}, undefined, 8_192],
    ["the model's own where that is less", { maxOutputTokens: 4_000 }, undefined, 4_000],
    ["the default where the model could give more", { maxOutputTokens: 64_000 }, undefined, 8_192],
    ["the stage's own, always", { maxOutputTokens: 4_000 }, 6_000, 6_000],
  ])("is %s", async (_what, more, own, expected) => {
    const model = billedModel(() => finishes({ input: 1, output: 1 }));
    const live = session({ model, tools, prices: { "billed/model": { ...PRICE, ...more } } });
    const only = state({ maxCostUsd: 1_000 }, own === undefined ? {} : { maxOutputTokens: own });
    await live.run(one(only), task);
    expect(model.asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([expected]);
  });
});

describe("the context window", () => {
  const filling = (window: number | undefined, retries = 0) => {
    const model = billedModel(({ turn }) => {
      const at = turn % 5;
      return at < 4 ? looks({ input: 200 * (at + 1), output: 10 }, turn) : finishes({ input: 990, output: 5 });
    });
    let sent = 0;
    const only = stage({
      prompt: "p",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 9,
      assert: () => {
        sent += 1;
        return sent <= retries ? { retry: "again" } : "ok";
      },
    });
    const live = session({
      model,
      tools,
      ...(window === undefined ? {} : { prices: { "billed/model": { contextWindow: window } } }),
    });
    return { live, pipe: one(only) };
  };

  test("that is 80 % full is said to be so, once in each attempt, and nothing is left out of the transcript", async () => {
    const { live, pipe } = filling(1_000, 1);
    const result = await live.run(pipe, task);
    expect(result).toMatchObject({ status: "completed", stages: [{ attempts: 2, turns: 10 }] });
    const events = await eventsOf(live.host, result.runId);
    const near = events.filter(({ type }) => type === "limit.near");
    expect(near.map(({ attempt }) => attempt)).toEqual([1, 2]);
    // The turn of 800 tokens in and 10 out.
    expect(near[0]?.data).toEqual({
      limit: "contextWindow",
      message: "the transcript fills 81 % of the model's context window of 1000 tokens",
      used: 810,
      max: 1_000,
    });
  });

  test("that is large enough, or that no one knows, is not spoken of", async () => {
    for (const window of [1_250, undefined]) {
      const { live, pipe } = filling(window);
      const result = await live.run(pipe, task);
      expect(dataOf(await eventsOf(live.host, result.runId), "limit.near")).toEqual([]);
    }
  });
});
