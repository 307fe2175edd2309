import { type AnyState, done, fanOut, pipeline, stage } from "@sluice/core";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { type Asked, type Billed, billedModel } from "../support/billed-model.ts";
import { handClock } from "../support/hand-clock.ts";
import { session, tool, work } from "../support/run-kit.ts";

// Random siblings whose calls use any part of what they may, are refused, cut, unmetered or stopped with their process, under
// random caps. Beside the meter stands a bill of its own: what the provider would charge for every call it ever began.

const PRICE = { input: 3, output: 17, cacheRead: 0.7, cacheWrite: 4.1 };
const MAX_OUTPUT = 200;

/** What one call does: with which part of the output it could have, and of its input from the cache and written to it. */
const deed = fc.record({
  kind: fc.constantFrom("looks", "looks", "looks", "finishes", "cut", "silent", "refused", "hangs"),
  output: fc.integer({ min: 0, max: MAX_OUTPUT }),
  cacheRead: fc.double({ min: 0, max: 0.5, noNaN: true }),
  cacheWrite: fc.double({ min: 0, max: 0.5, noNaN: true }),
});
type Deed = typeof deed extends fc.Arbitrary<infer D> ? D : never;
/** About this many full calls fit. */
const cap = fc.option(fc.double({ min: 0.3, max: 9, noNaN: true }), { nil: undefined });
const caps = fc.record({ maxCostUsd: cap, maxTokens: cap });
const story = fc.record({
  siblings: fc.array(
    fc.record({
      deeds: fc.array(deed, { minLength: 1, maxLength: 6 }),
      /** Tokens of its prompt as they are billed, at every turn: never more than was reckoned with. */
      input: fc.integer({ min: 1, max: 60 }),
      caps,
    }),
    { minLength: 2, maxLength: 4 },
  ),
  run: caps,
  maxParallel: fc.integer({ min: 1, max: 4 }),
});
type Story = typeof story extends fc.Arbitrary<infer S> ? S : never;

const FULL = { tokens: 600, costUsd: (400 * PRICE.cacheWrite + MAX_OUTPUT * PRICE.output) / 1e6 };
function limitsOf({ maxCostUsd, maxTokens }: Story["run"]) {
  return {
    ...(maxCostUsd === undefined ? {} : { maxCostUsd: maxCostUsd * FULL.costUsd }),
    ...(maxTokens === undefined ? {} : { maxTokens: Math.ceil(maxTokens * FULL.tokens) }),
  };
}

interface Bill {
  tokens: number;
  costUsd: number;
}
/** What the provider charges, by call; in flight it is the most it could be. */
class Provider {
  readonly calls: { readonly stage: string; billed: Bill }[] = [];
  readonly #deeds: ReadonlyMap<string, Deed[]>;
  readonly #inputs: ReadonlyMap<string, number>;
  /** A call began although it could pass a cap. */
  readonly faults: string[] = [];
  readonly caps: (
    stage: string,
  ) => readonly { readonly of: (stage: string) => boolean; readonly caps: ReturnType<typeof limitsOf> }[];

  constructor(deeds: ReadonlyMap<string, Deed[]>, inputs: ReadonlyMap<string, number>, caps: Provider["caps"]) {
    this.#deeds = deeds;
    this.#inputs = inputs;
    this.caps = caps;
  }

  sum(of: (stage: string) => boolean): Bill {
    const own = this.calls.filter(({ stage }) => of(stage));
    const total = (key: keyof Bill): number => own.reduce((sum, { billed }) => sum + billed[key], 0);
    return { tokens: total("tokens"), costUsd: total("costUsd") };
  }

  answer({ stage: id, maxOutputTokens = 0 }: Asked): Billed {
    const next: Deed = this.#deeds.get(id)?.shift() ?? {
      kind: "finishes",
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
    };
    const input = this.#inputs.get(id) ?? 1;
    const most = {
      tokens: input + maxOutputTokens,
      costUsd: (input * PRICE.cacheWrite + maxOutputTokens * PRICE.output) / 1e6,
    };
    const call = { stage: id, billed: most };
    this.calls.push(call);
    for (const { of, caps: held } of this.caps(id)) {
      const sum = this.sum(of);
      if (held.maxTokens !== undefined && sum.tokens > held.maxTokens) this.faults.push(`${id}: tokens`);
      if (held.maxCostUsd !== undefined && sum.costUsd > held.maxCostUsd + 1e-9) this.faults.push(`${id}: money`);
    }
    const bill = (tokens: number, costUsd: number): void => {
      call.billed = { tokens, costUsd };
    };
    const cacheRead = Math.floor(input * next.cacheRead);
    const cacheWrite = Math.floor(input * next.cacheWrite);
    const output = Math.min(next.output, maxOutputTokens);
    const fresh = input - cacheRead - cacheWrite;
    const cost =
      (fresh * PRICE.input + cacheRead * PRICE.cacheRead + cacheWrite * PRICE.cacheWrite + output * PRICE.output) / 1e6;
    switch (next.kind) {
      case "refused":
        bill(0, 0);
        return { kind: "refused", status: 529 };
      case "hangs":
        // Stopped with its process: what it came to nobody will say.
        return { kind: "hang" };
      case "cut":
        bill(input + output, cost);
        return { kind: "cut" };
      case "silent":
        bill(input + output, cost);
        return { kind: "answer", tool: "Look", input: { n: this.calls.length } };
      case "looks":
      case "finishes": {
        bill(input + output, cost);
        const used = { input, output, cacheRead, cacheWrite };
        const name = next.kind === "looks" ? "Look" : "finish";
        return { kind: "answer", tool: name, input: next.kind === "looks" ? { n: this.calls.length } : {}, used };
      }
    }
  }
}

async function live(drawn: Story) {
  const keys = drawn.siblings.map((_sibling, index) => `s${index}`);
  const own = new Map(drawn.siblings.map(({ caps: held }, index) => [`s${index}`, limitsOf(held)]));
  const runCaps = limitsOf(drawn.run);
  const provider = new Provider(
    new Map(drawn.siblings.map(({ deeds }, index) => [`s${index}`, [...deeds]])),
    new Map(drawn.siblings.map(({ input }, index) => [`s${index}`, input])),
    (id) => [
      { of: (other) => other === id, caps: own.get(id) ?? {} },
      { of: () => true, caps: runCaps },
    ],
  );
  const states = Object.fromEntries(
    keys.map((key) => [
      key,
      stage({
        prompt: "Look around, then finish. ".repeat(10),
        allowedTools: ["Look"],
        completionTool: "finish",
        completionSchema: z.object({}),
        turnCap: 12,
        maxOutputTokens: MAX_OUTPUT,
        limits: own.get(key) ?? {},
        retryPolicy: { maxAttempts: 1 },
      }),
    ]),
  );
  const all: Record<string, AnyState> = { ...states, start: work(), join: work() };
  const pipe = pipeline({
    id: "spending",
    input: z.object({ task: z.string() }),
    limits: runCaps,
    stages: all,
    initial: "start",
    next: {
      start: () => fanOut(keys, { join: "join", onFailure: "settle" }),
      join: () => done("ok"),
    },
  });
  const clock = handClock();
  const memory = createMemoryJournals();
  const model = billedModel((asked) => provider.answer(asked));
  const look = tool("Look", { effect: "read" });
  const open = () =>
    session({
      model,
      tools: [look],
      prices: { [model.id]: PRICE },
      clock,
      maxParallel: drawn.maxParallel,
      host: createHost(memory.connect(), { clock }),
    });
  /** Goes on until the run is over, or nothing moves but calls that hang. */
  const rest = async (over: () => boolean): Promise<void> => {
    for (let calm = 0, seen = -1; calm < 12 && !over(); calm += 1) {
      for (let turn = 0; turn < 8; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      clock.turn(10_000);
      if (provider.calls.length !== seen) calm = 0;
      seen = provider.calls.length;
    }
  };
  let here = open();
  let handle = here.start(pipe, { task: "t" });
  for (let stopped = 0; ; stopped += 1) {
    let over = false;
    handle.then(
      () => (over = true),
      () => (over = true),
    );
    await rest(() => over);
    if (over || stopped >= 30) break;
    await handle.suspend();
    here = open();
    handle = here.resume(pipe, handle.runId);
  }
  const result = await handle;
  return { provider, result, runCaps, own, journals: await here.host.journal(handle.runId) };
}

test("no call starts that could pass a cap, and nothing is ever spent beyond one, whatever calls use, fail or crash", async () => {
  await fc.assert(
    fc.asyncProperty(story, async (drawn) => {
      const { provider, result, runCaps, own, journals } = await live(drawn);
      expect(provider.faults).toEqual([]);
      expect(verifyJournal(journals).faults).toEqual([]);

      // What the run says it spent is never less than the bill, and never more than its cap.
      const said = { tokens: result.usage.inputTokens + result.usage.outputTokens, costUsd: result.usage.costUsd ?? 0 };
      if (runCaps.maxTokens !== undefined) expect(said.tokens).toBeLessThanOrEqual(runCaps.maxTokens);
      if (runCaps.maxCostUsd !== undefined) expect(said.costUsd).toBeLessThanOrEqual(runCaps.maxCostUsd + 1e-9);
      for (const each of result.stages) {
        const id = each.executionId.replace(/#.*$/, "");
        const held = { ...own.get(id) };
        const capped = Object.keys({ ...runCaps, ...held }).length > 0;
        const bill = provider.sum((stageId) => stageId === id);
        const tokens = each.usage.inputTokens + each.usage.outputTokens;
        const costUsd = each.usage.costUsd ?? 0;
        if (held.maxTokens !== undefined) expect(tokens).toBeLessThanOrEqual(held.maxTokens);
        if (held.maxCostUsd !== undefined) expect(costUsd).toBeLessThanOrEqual(held.maxCostUsd + 1e-9);
        if (!capped) continue;
        expect(tokens).toBeGreaterThanOrEqual(bill.tokens);
        expect(costUsd + 1e-9).toBeGreaterThanOrEqual(bill.costUsd);
        if (each.status === "failed" && each.code === "budget")
          expect(each.detail).toMatchObject({ requested: expect.any(Number) });
      }
    }),
    { numRuns: 60 },
  );
});
