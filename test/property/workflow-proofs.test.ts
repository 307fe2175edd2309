import {
  type AnyChoice,
  type AnyState,
  backToInterrupted,
  done,
  fail,
  fanOut,
  final,
  fork,
  stage,
  to,
} from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import { proveProperty, readProperty } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { findWalk, type Oracle, oracle, specOf, type Trace, type Walked } from "../support/walked-machines.ts";

/** States that complete by events, and states that complete with an output. */
const [BY_EVENTS, BY_OUTPUT] = [
  ["a", "b", "c"],
  ["s", "t"],
];
const STATES = [...BY_EVENTS, ...BY_OUTPUT];
const FINALS = ["end", "failed"];

type RowPlan = {
  readonly from: string;
  readonly on: "E" | "F" | "*" | "failure" | "success";
  readonly to: AnyChoice;
  readonly guard: number;
  readonly approval: boolean;
};
const state = fc.constantFrom(...STATES);
const target = fc.oneof({ weight: 4, arbitrary: state }, fc.constantFrom(...FINALS));
const different = (from: fc.Arbitrary<string>) => fc.tuple(from, target).filter(([one, other]) => one !== other);
const choice: fc.Arbitrary<AnyChoice> = fc.oneof(
  { weight: 10, arbitrary: target.map((id) => to(id)) },
  { weight: 2, arbitrary: fc.constant(backToInterrupted()) },
  { weight: 1, arbitrary: fc.constantFrom(done(1), fail("no")) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        different(state),
        fc.option(different(state), { nil: undefined }),
        target,
        fc.option(target, { nil: undefined }),
        fc.constantFrom("all" as const, "any" as const),
      )
      .map(([one, two, onComplete, onFail, join]) => {
        const branches = [one, ...(two === undefined ? [] : [two])].map(([initial, terminal], index) => [
          `k${index}`,
          { initial, terminal },
        ]);
        return fork(Object.fromEntries(branches), { join, onComplete, ...(onFail === undefined ? {} : { onFail }) });
      }),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.shuffledSubarray(BY_OUTPUT, { minLength: 1 }),
        fc.constantFrom(...BY_EVENTS, "end"),
        fc.constantFrom("cancel" as const, "settle" as const),
      )
      .map(([siblings, join, onFailure]) => fanOut(siblings, { join, onFailure })),
  },
);
const row: fc.Arbitrary<RowPlan> = fc.record({
  from: fc.oneof({ weight: 6, arbitrary: state }, fc.constant("*")),
  on: fc.constantFrom("E" as const, "E" as const, "F" as const, "*" as const, "failure" as const, "success" as const),
  to: choice,
  guard: fc.nat(5),
  approval: fc.nat(4).map((n) => n === 0),
});
const machine = fc.record({
  rows: fc.array(row, { minLength: 4, maxLength: 10 }),
  interrupts: fc.array(state, { maxLength: 2 }),
  bash: fc.subarray(STATES),
  maxVisits: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
});
type MachinePlan = typeof machine extends fc.Arbitrary<infer T> ? T : never;

function definitionOf({ rows, interrupts, bash, maxVisits }: MachinePlan, { guard }: Oracle): PipelineDefinition {
  const stages: Record<string, AnyState> = { end: final("completed"), failed: final("failed") };
  const completion = { completionTool: "submit", completionSchema: z.object({ ok: z.boolean() }) };
  for (const id of STATES) {
    const own = { prompt: id, turnCap: 1, allowedTools: bash.includes(id) ? ["Bash"] : ["Read"] };
    stages[id] = BY_OUTPUT.includes(id) ? stage({ ...own, ...completion }) : stage(own);
  }
  return {
    id: "m",
    input: z.unknown(),
    stages,
    initial: "a",
    transitions: rows.map(({ from, on, to: choiceOf, guard: index, approval }) => ({
      from,
      on: on === "failure" || on === "success" ? on : { event: on },
      to: choiceOf,
      ...(index < 2 ? { when: guard(`g${index}`) } : {}),
      ...(approval ? { approval: {} } : {}),
    })),
    interrupts: Object.fromEntries(interrupts.map((handler, index) => [`i${index}`, { files: "**", target: handler }])),
    ...(maxVisits === undefined ? {} : { limits: { maxVisits } }),
  };
}

interface Wish {
  readonly kind: "never" | "always";
  readonly what: string;
  readonly order?: "before" | "after";
  readonly of?: string;
}
const required = fc.constantFrom(...STATES, "end", "approved");
const any = fc.oneof({ weight: 4, arbitrary: required }, { weight: 1, arbitrary: fc.constant("tool Bash") });
const wish: fc.Arbitrary<Wish> = fc
  .oneof(
    fc.record({ kind: fc.constant("never" as const), what: any }),
    fc.record({ kind: fc.constant("always" as const), what: required }),
    fc.record({ kind: fc.constant("never" as const), what: any, order: fc.constant("before" as const), of: required }),
    fc.record({ kind: fc.constant("never" as const), what: any, order: fc.constant("after" as const), of: any }),
    fc.record({
      kind: fc.constant("always" as const),
      what: required,
      order: fc.constantFrom("before" as const, "after" as const),
      of: any,
    }),
  )
  .filter(
    ({ kind, what, ...rest }) => !("of" in rest) || what !== rest.of || (kind === "never" && rest.order === "after"),
  );

/** Whether a walk breaks a property, straight from what the words mean. */
function breaks({ kind, what, order, of }: Wish, { trace, completed }: Walked): boolean {
  const places = (word: string | undefined): readonly number[] =>
    trace.flatMap((one, index) => (one === word ? [index] : []));
  const [whats, ofs] = [places(what), places(of)];
  if (order === undefined) return kind === "never" ? whats.length > 0 : completed && whats.length === 0;
  if (kind === "never" && order === "before") return whats.some((at) => !ofs.some((other) => other < at));
  if (kind === "never") return whats.some((at) => ofs.some((other) => other < at));
  if (order === "before") return ofs.some((at) => !whats.some((other) => other < at));
  return completed && ofs.some((at) => !whats.some((other) => other > at));
}

/** What has to be known of a walk to judge how it goes on. */
function factsOf({ what, of }: Wish, trace: Trace): string {
  return JSON.stringify([
    trace.includes(what),
    trace.includes(of ?? ""),
    trace.lastIndexOf(what) > trace.lastIndexOf(of ?? ""),
  ]);
}

test("a proven property holds on every walk of the machine, and a counterexample is a shortest walk", {
  timeout: 300_000,
}, async () => {
  const seen = { proven: 0, violated: 0, unknown: 0, provenWhole: 0 };
  await fc.assert(
    fc.asyncProperty(machine, wish, async (plan, wished) => {
      const world = oracle();
      const spec = specOf(definitionOf(plan, world));
      const { kind, what, order, of } = wished;
      const text = [what, ...(order === undefined ? [] : [order, of])].join(" ").replaceAll("tool ", "tool:");
      const reading = readProperty(spec, `${kind}: ${text}`);
      if (!reading.ok) throw new Error(`${text}: ${reading.message}`);
      const verdict = proveProperty(spec, reading.property, { maxSituations: 1_500 });
      seen[verdict.verdict] += 1;
      if (verdict.verdict === "unknown") return;
      const walks = await findWalk(spec, world, ["Bash"], {
        facts: (trace) => factsOf(wished, trace),
        isFound: (walked) => breaks(wished, walked),
        most: 600,
      });
      if (verdict.verdict === "proven") {
        if (walks.isWhole) seen.provenWhole += 1;
        expect(walks.found).toBeUndefined();
      } else if (walks.found === undefined) {
        expect(walks.isWhole).toBe(false);
      } else {
        // Children in which nothing matters are left out of a counterexample.
        expect(verdict.path.length).toBeLessThanOrEqual(walks.found.steps);
        const forks = plan.rows.some(({ to: choiceOf }) => "branches" in choiceOf || "siblings" in choiceOf);
        if (!forks) expect(verdict.path.length).toBe(walks.found.steps);
      }
    }),
    { numRuns: 200 },
  );
  expect(Math.min(seen.proven, seen.violated, seen.provenWhole)).toBeGreaterThan(20);
});
