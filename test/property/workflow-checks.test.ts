import {
  type AnyChoice,
  type AnyState,
  backToInterrupted,
  fanOut,
  final,
  fork,
  type Json,
  type JsonObject,
  type PipelineSpec,
  stage,
  to,
} from "@sluice/core";
import { compilePipeline } from "@sluice/core/host";
import {
  apply,
  type Child,
  type ChildEnd,
  initialState,
  type MachineInput,
  type MachineState,
  transition,
} from "@sluice/core/machine";
import { allOf, checkWorkflow, type OperatorCondition, operatorGuard } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";

const [BY_EVENTS, BY_OUTPUT] = [["a", "b", "c"], ["s"]];
const STATES = [...BY_EVENTS, ...BY_OUTPUT];

const value = fc.constantFrom<Json>(null, 0, 1, 2, "p", "q", ["p"]);
const field = fc.constantFrom("x", "y", "x", "_z", "o.p");
const condition: fc.Arbitrary<OperatorCondition> = fc.oneof(
  fc.record({ field, op: fc.constantFrom("eq" as const, "neq" as const), value }),
  fc.record({
    field,
    op: fc.constantFrom("gt" as const, "gte" as const, "lt" as const, "lte" as const),
    value: fc.integer({ min: 0, max: 2 }),
  }),
  fc.record({ field, op: fc.constant("in" as const), value: fc.array(value, { maxLength: 2 }) }),
  fc.record({ field, op: fc.constant("contains" as const), value: fc.constantFrom("p", 1) }),
  fc.record({ field, op: fc.constantFrom("exists" as const, "not_exists" as const) }),
);
const target = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...STATES) }, fc.constantFrom("end", "failed"));
const patch = fc.dictionary(fc.constantFrom("x", "y"), value, { maxKeys: 2, noNullPrototype: true });
const choice: fc.Arbitrary<AnyChoice> = fc.oneof(
  { weight: 6, arbitrary: target.map((id) => to(id)) },
  { weight: 3, arbitrary: fc.tuple(target, patch).map(([id, context]) => to(id, undefined, { context })) },
  { weight: 1, arbitrary: fc.constant(backToInterrupted()) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...STATES), target, target, fc.option(target, { nil: undefined }))
      .filter(([initial, terminal]) => initial !== terminal)
      .map(([initial, terminal, onComplete, onFail]) =>
        fork({ k: { initial, terminal } }, { onComplete, ...(onFail === undefined ? {} : { onFail }) }),
      ),
  },
  { weight: 1, arbitrary: fc.constantFrom(...BY_EVENTS, "end").map((join) => fanOut(BY_OUTPUT, { join })) },
);
const machine = fc.record({
  rows: fc.array(
    fc.record({
      from: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...STATES) }, fc.constant("*")),
      on: fc.constantFrom("E" as const, "E" as const, "F" as const, "success" as const, "failure" as const),
      when: fc.array(condition, { maxLength: 2 }),
      to: choice,
    }),
    { minLength: 3, maxLength: 9 },
  ),
  context: fc.dictionary(fc.constantFrom("x", "y"), value, { maxKeys: 2, noNullPrototype: true }),
  interrupts: fc.array(fc.constantFrom(...STATES), { maxLength: 1 }),
});
type MachinePlan = typeof machine extends fc.Arbitrary<infer T> ? T : never;

function specOf({ rows, context, interrupts }: MachinePlan): PipelineSpec {
  const stages: Record<string, AnyState> = { end: final("completed"), failed: final("failed") };
  const completion = { completionTool: "submit", completionSchema: z.object({ ok: z.boolean() }) };
  for (const id of STATES) {
    const own = { prompt: id, turnCap: 1, allowedTools: [] };
    stages[id] = BY_OUTPUT.includes(id) ? stage({ ...own, ...completion }) : stage(own);
  }
  const transitions = rows.map(({ from, on, when, to: choiceOf }) => ({
    from,
    on: on === "success" || on === "failure" ? on : { event: on },
    to: choiceOf,
    ...(when.length === 0 ? {} : { when: allOf(when.map((one, index) => operatorGuard(`g${index}`, one))) }),
  }));
  const detours = Object.fromEntries(
    interrupts.map((handler, index) => [`i${index}`, { files: "**", target: handler }]),
  );
  const limits = { maxVisits: 30, maxHops: 100 };
  return compilePipeline({
    id: "m",
    input: z.unknown(),
    stages,
    initial: "a",
    transitions,
    context,
    interrupts: detours,
    limits,
  }).spec;
}

/** What happens at one step of a walk. */
type Happening = { readonly kind: "E" | "F" | "success" | "failure" | "interrupt"; readonly data: JsonObject };
const happening: fc.Arbitrary<Happening> = fc.record({
  kind: fc.constantFrom(
    "E" as const,
    "E" as const,
    "F" as const,
    "success" as const,
    "failure" as const,
    "interrupt" as const,
  ),
  data: fc.dictionary(fc.constantFrom("x", "y", "o"), fc.oneof(value, fc.constant({ p: 1 })), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
});

interface Seen {
  readonly rows: Set<number>;
  readonly states: Set<string>;
}

/** Walks a machine as the happenings say. Children walk with those that are left. */
async function walk(
  spec: PipelineSpec,
  at: MachineState,
  happenings: Happening[],
  seen: Seen,
  isSibling = false,
): Promise<"completed" | "failed"> {
  for (let happened = happenings.shift(); happened !== undefined; happened = happenings.shift()) {
    const state = at.at?.state ?? "";
    const isHandler = at.suspended.length > 0;
    if (isSibling && !isHandler && (happened.kind === "success" || happened.kind === "failure")) break;
    const input = inputOf(spec, state, happened, at);
    if (input === undefined || (isSibling && !isHandler && input.kind !== "interrupt")) continue;
    let { effect, patch: change, trace } = await transition(spec, at, input);
    // A sibling's handler has no way on but back.
    if (isSibling && input.kind !== "interrupt" && effect.kind !== "return") continue;
    if (trace.row !== undefined && trace.rejected === undefined && effect.kind !== "stay") seen.rows.add(trace.row);
    for (;;) {
      apply(at, change);
      if (effect.kind === "end") {
        if (effect.end.state !== undefined) seen.states.add(effect.end.state);
        return effect.end.status === "completed" ? "completed" : "failed";
      }
      if (effect.kind === "enter") seen.states.add(effect.state);
      if (effect.kind !== "fanOut") break;
      const ended: ChildEnd[] = [];
      for (const child of effect.children) ended.push(await childEnd(spec, at, child, happenings, seen));
      ({ effect, patch: change, trace } = await transition(spec, at, { kind: "children", ended }));
      if (trace.row !== undefined) seen.rows.add(trace.row);
    }
  }
  return isSibling ? "completed" : "failed";
}

async function childEnd(
  spec: PipelineSpec,
  parent: MachineState,
  child: Child,
  happenings: Happening[],
  seen: Seen,
): Promise<ChildEnd> {
  if (child.kind === "invoke") throw new Error("there are no other pipelines here");
  const { key, state } = child;
  seen.states.add(state);
  const terminal = child.kind === "branch" ? child.terminal : undefined;
  const machineState: MachineState = {
    ...parent,
    counts: new Map(),
    hops: 0,
    at: { state, input: null, visit: 1 },
    pending: undefined,
    suspended: [],
    terminal,
  };
  const status = await walk(spec, machineState, happenings, seen, child.kind === "sibling");
  if (status === "completed") return { key, turns: 0, status, output: null };
  return { key, turns: 0, status, code: "failed", message: "no" };
}

function inputOf(
  spec: PipelineSpec,
  state: string,
  { kind, data }: Happening,
  at: MachineState,
): MachineInput | undefined {
  const byEvents = spec.states.get(state)?.completesByEvents === true;
  const base = { executionId: `${state}#1`, attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  switch (kind) {
    case "interrupt": {
      const [first] = spec.interrupts;
      const handled = at.suspended.some(({ interrupt }) => interrupt === first?.name);
      return first === undefined || handled ? undefined : { kind, name: first.name, path: "x" };
    }
    case "failure":
      return { kind: "result", result: { ...base, status: "failed", code: "tool", message: "no" } };
    case "success":
      return byEvents ? undefined : { kind: "result", result: { ...base, status: "completed", output: null } };
    default:
      return byEvents ? { kind: "event", event: kind, data } : undefined;
  }
}

const NEVER = new Set(["guard-never", "guard-contradiction", "shadowed-row", "return-outside-interrupt"]);

test("a row that is said never to apply does not, and a state that is said never to be entered is not", async () => {
  const found = { rows: 0, states: 0, fired: 0 };
  await fc.assert(
    fc.asyncProperty(
      machine,
      fc.array(fc.array(happening, { minLength: 4, maxLength: 14 }), { minLength: 12, maxLength: 12 }),
      async (plan, walks) => {
        const spec = specOf(plan);
        const findings = checkWorkflow(spec);
        const rows = findings.flatMap(({ rule, path }) => (NEVER.has(rule) ? [Number(/\d+/u.exec(path)?.[0])] : []));
        const states = findings.flatMap(({ rule, path }) =>
          rule === "never-entered" ? [path.slice("stages.".length)] : [],
        );
        const seen: Seen = { rows: new Set(), states: new Set(["a"]) };
        for (const happenings of walks) {
          const at = initialState(spec, { input: null });
          apply(at, (await transition(spec, at, { kind: "start" })).patch);
          await walk(spec, at, [...happenings], seen);
        }
        expect(rows.filter((row) => seen.rows.has(row))).toEqual([]);
        expect(states.filter((state) => seen.states.has(state))).toEqual([]);
        found.rows += rows.length;
        found.states += states.length;
        found.fired += seen.rows.size;
      },
    ),
    { numRuns: 400 },
  );
  expect(Math.min(found.rows, found.states, found.fired)).toBeGreaterThan(100);
});
