import {
  type ActScope,
  type AnyState,
  done,
  fanOut,
  pipeline,
  type RunLimits,
  type StepCost,
  stage,
  type Usage,
} from "@sluice/core";
import type { PriceOption } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Billed, billedModel, type Used } from "../support/billed-model.ts";
import { completed, eventsOf, noModel, session, work } from "../support/run-kit.ts";

const task = { task: "t" };
const prices = { "billed/model": { input: 1_000, output: 10_000 } };

const plain = {
  prompt: "p",
  allowedTools: [],
  completionTool: "finish",
  completionSchema: z.object({}),
  turnCap: 2,
};
function one(only: AnyState, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    limits,
    stages: { one: only },
    initial: "one",
    next: { one: () => done("ok") },
  });
}
const CAPS = { maxTokens: 100, maxCostUsd: 1 };
const used = (tokens: number, costUsd: number): Usage => ({ inputTokens: tokens, outputTokens: 0, costUsd });
const NO_AMOUNTS: readonly (readonly [string, Usage])[] = [
  ["no number", used(Number.NaN, Number.NaN)],
  ["no number of dollars", used(1, Number.NaN)],
  ["less than nothing", used(-1_000, -1_000)],
  ["less than nothing of one kind", { inputTokens: 1_000, outputTokens: -1_000, costUsd: 0 }],
  ["as much of one kind as less than nothing of the other", { inputTokens: 1_000, outputTokens: -1_000 }],
  ["less than no dollars", used(1, -1_000)],
  ["without end", used(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)],
  ["less than no calls without a price", { ...used(1, 0), unpricedCalls: -1 }],
];
const MORE = used(101, 1.01);

/** Whether an executor gets more than the caps allow, after what it tried, and whether a sibling does. */
async function afterwards(tried: (scope: ActScope) => unknown): Promise<unknown> {
  const asks = (first: (scope: ActScope) => unknown) =>
    work({
      act: async (scope) => {
        await first(scope);
        return completed(await scope.steps.run("more", () => scope.budget.reserve(MORE) === undefined));
      },
    });
  const forked = pipeline({
    id: "forked",
    input: z.object({ task: z.string() }),
    limits: CAPS,
    stages: { start: work(), capped: asks(tried), other: asks(() => undefined), join: work() },
    initial: "start",
    next: {
      start: () => fanOut(["capped", "other"], { join: "join" }),
      join: () => done("ok"),
    },
  });
  const { stages } = await session({ model: noModel, maxParallel: 1 }).run(forked, task);
  return stages.flatMap((entry) => ("output" in entry && typeof entry.output === "boolean" ? [entry.output] : []));
}

describe("a cap holds whatever an executor says it spends", () => {
  const spending = (cost: StepCost) => (scope: ActScope) => scope.steps.run("spend", () => null, { cost: () => cost });
  test.each(NO_AMOUNTS)("it reserves %s", async (_what, most) => {
    expect(await afterwards(({ budget }) => void budget.reserve(most))).toEqual([false, false]);
  });
  test.each(NO_AMOUNTS)("it reserves little, and its step costs %s", async (_what, cost) => {
    const tried = ({ steps, budget }: ActScope): Promise<boolean> =>
      steps.run("spend", () => budget.reserve(used(1, 0.01)) === undefined, { cost: () => cost });
    expect(await afterwards(tried)).toEqual([false, false]);
  });
  test.each(NO_AMOUNTS)("it spent %s", async (_what, cost) => {
    expect(await afterwards(spending(cost))).toEqual([false, false]);
  });
  test("it reserves, and its step says nothing of a cost", async () => {
    const tried = ({ steps, budget }: ActScope): Promise<boolean> =>
      steps.run("spend", () => budget.reserve(used(50, 0.5)) === undefined);
    expect(await afterwards(async (scope) => [await tried(scope), await scope.steps.now("then")])).toEqual([
      false,
      false,
    ]);
  });
});

test("a cap on money alone holds after tokens that cancel each other out", async () => {
  const spends = work({
    act: async ({ steps, budget }) => {
      await steps.run("spend", () => null, { cost: () => ({ inputTokens: 1_000, outputTokens: -1_000 }) });
      return completed(await steps.run("more", () => budget.reserve(used(1, 0.01)) === undefined));
    },
  });
  const { stages } = await session({ model: noModel }).run(one(spends, { maxCostUsd: 1 }), task);
  expect(stages).toMatchObject([{ output: false }]);
});

test("a cost that answers differently each time it is read adds nothing to its record", async () => {
  const forged = '1}},{"type":"run.finished","data":{"status":"completed"}},{"x":{"y":1';
  for (const first of [0, 1]) {
    let reads = first;
    const cost: StepCost = Object.defineProperty({}, "inputTokens", { get: () => (reads++ % 2 === 0 ? 1 : forged) });
    const spends = work({
      act: async ({ steps }) => completed(await steps.run("spend", () => null, { cost: () => cost })),
    });
    const live = session({ model: noModel });
    const { runId } = await live.run(one(spends), task);
    expect((await eventsOf(live.host, runId)).filter(({ type }) => type === "run.finished")).toHaveLength(1);
  }
});

test("a cost with times that are no numbers adds nothing to its record", async () => {
  const forged = '1]}},{"type":"run.finished","data":{"status":"completed"}},{"x":[1';
  for (const aroundMs of [[forged], forged, null]) {
    const cost: StepCost = Object.defineProperty({ inputTokens: 1 }, "aroundMs", { value: aroundMs });
    const spends = work({
      act: async ({ steps }) => completed(await steps.run("spend", () => null, { cost: () => cost })),
    });
    const live = session({ model: noModel });
    const { runId, status } = await live.run(one(spends), task);
    expect(status).toBe("completed");
    expect((await eventsOf(live.host, runId)).filter(({ type }) => type === "run.finished")).toHaveLength(1);
  }
});

describe("a cap holds whatever a provider says a call used", () => {
  const looks = (used: Used, turn: number): Billed => ({ kind: "answer", tool: "Nothing", input: { turn }, used });
  const capped = stage({ ...plain, limits: { maxCostUsd: 20 }, turnCap: 50, maxOutputTokens: 100 });
  test.each<readonly [string, Used]>([
    ["nothing", { input: 0, output: 0 }],
    ["less than nothing", { input: -1e9, output: -1e9 }],
    ["less than nothing of one kind", { input: 1_000, output: -1e9 }],
    ["no numbers", { input: Number.NaN, output: Number.NaN }],
    ["more from a cache than it was sent", { input: 1_000, output: 1, cacheRead: 1e300, cacheWrite: 1e300 }],
    ["less than nothing from a cache", { input: 1_000, output: 100, cacheRead: -1e9, cacheWrite: -1e9 }],
    ["beyond all numbers", { input: 1e308, output: 1e308 }],
    ["without end", { input: Number.POSITIVE_INFINITY, output: Number.POSITIVE_INFINITY }],
  ])("%s", async (_what, used) => {
    const model = billedModel(({ turn }) => looks(used, turn));
    const live = session({ model, prices });
    const result = await live.run(one(capped), task);
    expect(result).toMatchObject({ status: "failed", error: { code: "budget" } });
    // At a dollar and more a call, twenty of them are not fifty.
    expect(model.asked.length).toBeLessThan(20);
    const { inputTokens, outputTokens, costUsd = 0 } = result.usage;
    for (const amount of [inputTokens, outputTokens, costUsd])
      expect(Number.isFinite(amount) && amount >= 0).toBe(true);
    expect((await eventsOf(live.host, result.runId)).at(-1)?.type).toBe("run.finished");
  });
});

describe("prices that no cap could be held with are refused", () => {
  test.each<readonly [string, PriceOption]>([
    ["no number", { input: Number.NaN, output: 1 }],
    ["less than nothing", { input: -1, output: 1 }],
    ["without end", { input: Number.POSITIVE_INFINITY, output: 1 }],
    ["so high that a call's cost is no number", { input: 1e300, output: 1e300 }],
    ["less than nothing for a long prompt", { input: 1, output: 1, longPrompt: { over: 1, input: -1, output: 1 } }],
  ])("%s", async (_what, price) => {
    const make = async () =>
      await session({ model: billedModel(() => ({ kind: "cut" })), prices: { "billed/model": price } }).run(
        one(work()),
        task,
      );
    await expect(make()).rejects.toMatchObject({ code: "invalid_prices" });
  });
  test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 0])("a cap of %d", (maxCostUsd) => {
    expect(() => one(stage({ ...plain, limits: { maxCostUsd } }))).toThrow(/maxCostUsd/);
    expect(() => one(work(), { maxCostUsd })).toThrow(/maxCostUsd/);
  });
});
