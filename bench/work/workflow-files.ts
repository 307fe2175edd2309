import type { Json, StageResult } from "@sluice/core";
import { apply, initialState, type MachineInput, type MachineState, transition } from "@sluice/core/machine";
import { loadWorkflow } from "@sluice/workflows";
import type { Workload, WorkloadOptions } from "../measure.ts";

type Spec = NonNullable<Awaited<ReturnType<typeof loadWorkflow>>["pipeline"]>["spec"];

/** Rows with conditions that a hop evaluates, of which the last applies. */
const ROWS = 100;
const STATES_OF_LONG_FILE = 200;

const completed: StageResult<Json> = {
  status: "completed",
  executionId: "one#1",
  attempts: 1,
  turns: 1,
  usage: { inputTokens: 1, outputTokens: 1 },
  ms: 1,
  output: { verdict: "approve" },
};

/** The pipeline of a document that is held in memory. */
async function specOf(document: object): Promise<Spec> {
  const text = JSON.stringify(document, null, 2);
  const { pipeline, diagnostics } = await loadWorkflow("bench.json", {
    read: async () => text,
    list: async () => undefined,
  });
  if (pipeline !== undefined) return pipeline.spec;
  throw new Error(diagnostics.map(({ message }) => message).join("\n"));
}

/** Two states of a Statewright document that lead to each other by an event with guarded branches. */
function guarded(rows: number): object {
  const other = { one: "two", two: "one" } as const;
  const branches = (target: string): object[] =>
    Array.from({ length: rows }, (_, row) => (row === rows - 1 ? { target } : { target, guard: `guard_${row}` }));
  const state = (id: "one" | "two"): object => ({
    allowed_tools: [],
    on: { GO: branches(other[id]), STOP: "stopped" },
  });
  const guards = Array.from({ length: rows }, (_, row) => [
    `guard_${row}`,
    { field: "count", op: "eq", value: row + 1 },
  ]);
  return {
    id: "guarded",
    initial: "one",
    context: { count: 0 },
    states: { one: state("one"), two: state("two"), stopped: { type: "final", outcome: "completed" } },
    guards: Object.fromEntries(guards),
  };
}

/** The same as a Flujo state machine, with conditions in CEL. */
function conditional(rows: number): object {
  const other = { one: "two", two: "one" } as const;
  const leading = (from: "one" | "two"): object[] =>
    Array.from({ length: rows }, (_, row) =>
      row === rows - 1
        ? { from, on: "success", to: other[from] }
        : { from, on: "success", to: "done", when: `context.count == ${row + 1} && output.event == "success"` },
    );
  return {
    kind: "StateMachine",
    name: "conditional",
    start_state: "one",
    end_states: ["done"],
    context: { count: 0 },
    states: { one: { steps: [] }, two: { steps: [] } },
    transitions: [...leading("one"), ...leading("two"), { from: "*", on: "failure", to: "done" }],
  };
}

async function hops({ quick }: WorkloadOptions, document: object, input: MachineInput): Promise<Workload> {
  const units = quick ? 200 : 5_000;
  const loaded = await specOf(document);
  const spec: Spec = { ...loaded, limits: { ...loaded.limits, maxVisits: units, maxHops: units } };
  return {
    warmUps: quick ? 1 : 5,
    slice: async () => {
      const state: MachineState = initialState(spec, { input: {} });
      apply(state, (await transition(spec, state, { kind: "start" })).patch);
      let traced = 0;
      for (let hop = 0; hop < units; hop += 1) {
        const { effect, patch, trace } = await transition(spec, state, input);
        if (effect.kind !== "enter") throw new Error(`a hop ended with ${effect.kind}`);
        traced = Math.max(traced, trace.rejectedRows?.length ?? 0);
        apply(state, patch);
      }
      return { units, facts: { traced } };
    },
  };
}

const go: MachineInput = { kind: "event", event: "GO", data: {} };
const result: MachineInput = { kind: "result", result: completed };

/** An event with a hundred branches, and with one. */
export const guardedHops = (options: WorkloadOptions): Promise<Workload> => hops(options, guarded(ROWS), go);
export const plainEventHops = (options: WorkloadOptions): Promise<Workload> => hops(options, guarded(1), go);
/** A table with a hundred conditions in CEL for a state, and with none. */
export const celHops = (options: WorkloadOptions): Promise<Workload> => hops(options, conditional(ROWS), result);
export const plainTableHops = (options: WorkloadOptions): Promise<Workload> => hops(options, conditional(1), result);

/** Reading, checking and compiling a long file. */
export async function longFile({ quick }: WorkloadOptions): Promise<Workload> {
  const states = Object.fromEntries(
    Array.from({ length: STATES_OF_LONG_FILE }, (_, at) => [
      `state-${at}`,
      {
        allowed_tools: ["Read", "Grep", "Bash"],
        allowed_commands: ["npm test"],
        instructions: `Do part ${at}. Read what you need, and change nothing else.`,
        max_iterations: 10,
        on: {
          NEXT: at + 1 < STATES_OF_LONG_FILE ? { target: `state-${at + 1}`, guard: "ready" } : "done",
          FAIL: "failed",
        },
      },
    ]),
  );
  const document = {
    id: "long",
    initial: "state-0",
    context: { count: 0 },
    states: { ...states, done: { type: "final", outcome: "completed" }, failed: { type: "final" } },
    guards: { ready: { field: "count", op: "gte", value: 0 } },
  };
  const units = quick ? 1 : 5;
  return {
    warmUps: quick ? 0 : 3,
    slice: async () => {
      for (let load = 0; load < units; load += 1) await specOf(document);
      return { units, facts: {} };
    },
  };
}
