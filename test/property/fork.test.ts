import { done, fail, fanOut, type Json, type Pipeline, pipeline, type RunHost, stage, to } from "@sluice/core";
import { forkPointsOf, recordsBefore } from "@sluice/core/host";
import { scriptedModel } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { eventsOf, session, tool } from "../support/run-kit.ts";

const STATES = ["a", "b", "c", "d"] as const;
type StateId = (typeof STATES)[number];
type Move =
  | { readonly do: "to"; readonly state: StateId }
  | { readonly do: "fork"; readonly siblings: readonly StateId[]; readonly join: StateId; readonly settle: boolean }
  | { readonly do: "done" | "fail" };
/** Where each state goes, by how often it was entered; past the last it is done. */
type Moves = Readonly<Record<StateId, readonly Move[]>>;

const stateId = fc.constantFrom(...STATES);
const fork = fc
  .record({ all: fc.shuffledSubarray([...STATES], { minLength: 3 }), settle: fc.boolean() })
  .map(({ all: [join = "a", ...siblings], settle }): Move => ({ do: "fork", siblings, join, settle }));
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 3, arbitrary: stateId.map((state): Move => ({ do: "to", state })) },
  { weight: 3, arbitrary: fork },
  { weight: 1, arbitrary: fc.constantFrom<Move>({ do: "done" }, { do: "fail" }) },
);
const some = fc.array(move, { minLength: 1, maxLength: 3 });
const moves = fc.record({ a: some, b: some, c: some, d: some });

const said = z.object({ text: z.string() });
function of(plan: Moves): Pipeline<{ task: string }, unknown> {
  const step = (allowedTools: readonly string[]) =>
    stage({ prompt: "Go on.", allowedTools, completionTool: "finish", completionSchema: said, turnCap: 3 });
  const next = (id: StateId) => ({
    completed: (_result: object, ctx: { readonly visit: number; readonly upstream: object }) => {
      const now: Move = plan[id][ctx.visit - 1] ?? { do: "done" };
      switch (now.do) {
        case "to":
          return to(now.state, undefined, { context: { last: `${id}#${ctx.visit}` } });
        case "fork":
          return fanOut(now.siblings, { join: now.join, onFailure: now.settle ? "settle" : "cancel" });
        case "done":
          return done(Object.keys(ctx.upstream));
        case "fail":
          return fail(`${id} gave up`);
      }
    },
    failed: () => fail("a state failed"),
  });
  return pipeline({
    id: "random",
    input: z.object({ task: z.string() }),
    stages: { a: step([]), b: step(["Own"]), c: step([]), d: step(["Own"]) },
    initial: "a",
    limits: { maxVisits: 3, maxHops: 7 },
    next: { a: next("a"), b: next("b"), c: next("c"), d: next("d") },
  });
}

const call = (name: string, input: Json) => ({ calls: [{ tool: name, input: JSON.parse(JSON.stringify(input)) }] });
/** What a state says tells which turn of it that is; `b` calls a tool before, and `d` fails now and then. */
const script = Object.fromEntries(
  STATES.map((id) => [
    id,
    Array.from({ length: 30 }, (_, turn) => {
      if (id === "b" && turn % 2 === 0) return call("Own", { turn });
      return id === "d" && turn % 5 > 1 ? { text: "no call" } : call("finish", { text: `${id} ${turn}` });
    }),
  ]),
);

async function endOf(host: RunHost, runId: string): Promise<Json> {
  await eventsOf(host, runId);
  return { ...(await host.result(runId)) };
}

test("a fork at any boundary of any run has a valid record and comes, with the same model, to the same end", async () => {
  const here = session({ model: scriptedModel({ stages: script }), tools: [tool("Own")] });
  let boundaries = 0;
  await fc.assert(
    fc.asyncProperty(moves, async (plan) => {
      const flow = of(plan);
      const { runId } = await here.run(flow, { task: "x" });
      const end = await endOf(here.host, runId);
      const journals = await here.host.journal(runId);
      const all = forkPointsOf(journals);
      for (const boundary of all) {
        const handle = here.fork(flow, runId, { from: boundary.executionId });
        await handle;
        expect(await endOf(here.host, handle.runId)).toEqual(end);
        const forked = await here.host.journal(handle.runId);
        expect(forkPointsOf(forked).map(({ executionId }) => executionId)).toEqual(
          all.map(({ executionId }) => executionId),
        );
        // What came along is what was recorded: values to the letter, but for the heads that bind siblings.
        const past = recordsBefore(journals, boundary);
        const own = new Map(forked.map((journal) => [journal.runId, journal.records]));
        for (const { runId: id, records } of past)
          for (const [index, { stepId, phase, ordinal, incarnation, value }] of records.entries()) {
            if (index === 0 && id === runId) continue;
            const copy = own.get(handle.runId + id.slice(runId.length))?.[index];
            expect(copy).toMatchObject({ stepId, phase, ordinal, incarnation });
            if (!value.includes('"head":"')) expect(copy?.value).toBe(value);
          }
      }
      expect(await here.host.journal(runId)).toEqual(journals);
      boundaries += all.length;
    }),
    { numRuns: 15 },
  );
  expect(boundaries).toBeGreaterThan(30);
});
