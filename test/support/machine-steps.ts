import { field, isJsonObject, type Json, type JsonObject, type PipelineSpec, type StageContext } from "@sluice/core";
import {
  apply,
  type ChildEnd,
  contextOf,
  type Effect,
  follow,
  initialState,
  type MachineInput,
  type MachineState,
  type Transition,
  transition,
} from "@sluice/core/machine";
import { machinePipeline, newPlay, type Play, stateMaker } from "./machine-runs.ts";
import type { Asked, End, Machine } from "./reference-machine.ts";
import {
  type ChildEnded,
  type Effect as ExpectedEffect,
  legalEvents as expectedEvents,
  type Happened,
  type RunState,
  sightOf,
} from "./reference-step.ts";
import type { Walked } from "./reference-walk.ts";

// The same walk by `transition` and `apply` alone, and by the reference, step by step, in the same words.

/** What one step shows. */
export interface StepSeen {
  readonly effect: JsonObject;
  readonly asked: readonly Omit<Asked, "raced">[];
  readonly trace?: JsonObject;
  /** What code would read now. */
  readonly upstream?: JsonObject;
  readonly context?: JsonObject;
  readonly joined?: JsonObject;
  readonly suspended: Json;
  readonly legal?: Json;
}

export function expectedSteps(machine: Machine, walked: readonly Walked[]): readonly StepSeen[] {
  return walked.map(({ step: { effect, after, decision, asked } }) => {
    const at = after.at;
    const sight = at === undefined || effect.kind === "end" ? undefined : sightOf(after, at);
    return {
      effect: effectExpected(machine, effect, after),
      asked,
      ...(decision === undefined
        ? {}
        : {
            trace: plain({
              by: decision.choice.kind === "stay" ? "stay" : decision.by,
              row: decision.choice.kind === "stay" ? undefined : decision.row,
              refused: decision.refused ?? [],
              rejected: decision.rejected,
              choice: decision.choice.kind,
              event: decision.event,
              rationale: decision.rationale,
              merges: decision.choice.kind === "stay" ? undefined : mergesOf(decision.data),

              approval: decision.approval === undefined ? undefined : "asked",
              approved: decision.approved,
              code: decision.denied === true ? "approval_denied" : undefined,
            }),
          }),
      ...(sight === undefined
        ? {}
        : {
            upstream: sight.upstream,
            context: sight.context,
            joined: plain({ fork: sight.fork, items: sight.items }),
          }),
      suspended: after.suspended.map(({ place: { state, visit, input }, interrupt }) => ({
        interrupt,
        state,
        visit,
        input,
      })),
    };
  });
}

/** Takes the machine through the same that happened, one step after the other. */
export function stepper(): (machine: Machine, walked: readonly Walked[]) => AsyncGenerator<StepSeen> {
  let play: Play | undefined;
  const playOf = (): Play => {
    if (play === undefined) throw new Error("no machine walks");
    return play;
  };
  const madeOf = stateMaker(playOf);
  return (machine, walked) => {
    play = newPlay(machine);
    return stepsSeen(machine, machinePipeline(machine, playOf, madeOf).spec, play, walked);
  };
}

async function* stepsSeen(
  machine: Machine,
  spec: PipelineSpec,
  play: Play,
  walked: readonly Walked[],
): AsyncGenerator<StepSeen> {
  const state = initialState(spec, { input: machine.input });
  let question: { readonly effect: Extract<Effect, { kind: "approve" }>; readonly of: MachineInput } | undefined;
  let isFor = (_row: number): boolean => false;
  for (const { happened, before } of walked) {
    const input = inputOf(happened, before, question);
    const taken = await transition(spec, state, input);
    const again = follow(spec, state, input, taken.trace);
    if (JSON.stringify(again) !== JSON.stringify(taken)) throw new Error("the same decision is followed differently");
    apply(state, taken.patch);
    const { effect } = taken;
    if (effect.kind === "approve") question = { effect, of: input };
    if (happened.kind !== "answer") isFor = rowsFor(machine, happened);
    yield stepSeen(state, taken, play, isFor);
  }
}

function stepSeen(
  state: MachineState,
  { effect, trace }: Transition,
  play: Play,
  isFor: (row: number) => boolean,
): StepSeen {
  const asked = [...play.asked.values()].map(({ run: _run, ...one }) => one);
  play.asked.clear();
  const sight: StageContext | undefined =
    state.at === undefined || effect.kind === "end" ? undefined : contextOf(state);
  const choice = trace?.choice.kind;
  return {
    effect: effectSeen(effect),
    asked,
    ...(trace === undefined
      ? {}
      : {
          trace: plain({
            by: choice === "stay" ? "stay" : trace.by,
            row: choice === "stay" ? undefined : trace.row,
            refused: (trace.rejectedRows ?? []).map(({ row }) => row).filter(isFor),
            rejected: trace.rejected !== undefined,
            choice,
            event: trace.event,
            rationale: trace.rationale,
            merges: mergesOf(trace.context),
            approval: trace.approval === undefined ? undefined : "asked",
            approved: trace.approved,
            code: trace.code,
          }),
        }),
    ...(sight === undefined
      ? {}
      : {
          upstream: plain(sight.upstream),
          context: plain(sight.context),
          joined: plain({ fork: sight.fork, items: sight.items }),
        }),
    suspended: state.suspended.map(({ at: { state: id, visit, input }, interrupt }) => ({
      interrupt,
      state: id,
      visit,
      input,
    })),
  };
}

/** A trace may also name the rows that wait for something else. */
function rowsFor({ routes }: Machine, happened: Happened): (row: number) => boolean {
  const rows = routes.kind === "table" ? routes.rows : [];
  const results = { completed: "success", failed: "failure", skipped: "skipped", paused: "pause", cancelled: "" };
  const result = happened.kind === "result" ? results[happened.outcome.status] : "failure";
  return (row) => {
    const on = rows[row]?.on;
    return typeof on === "object" ? happened.kind === "event" : on === result;
  };
}

function inputOf(
  happened: Happened,
  before: RunState,
  question: { readonly effect: Extract<Effect, { kind: "approve" }>; readonly of: MachineInput } | undefined,
): MachineInput {
  switch (happened.kind) {
    case "start":
    case "cancelled":
    case "interrupt":
    case "event":
      return happened;
    case "answer": {
      if (question === undefined) throw new Error("nobody was asked");
      const { of, effect } = question;
      if (of.kind !== "event" && of.kind !== "result" && of.kind !== "children") throw new Error(`asked of ${of.kind}`);
      return { kind: "answer", of, decision: effect.decision, approved: happened.approved };
    }
    case "children":
      return { kind: "children", ended: happened.ended.map(endOf) };
    case "result": {
      const { at } = before;
      const facts = { attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
      return { kind: "result", result: { executionId: `${at?.state}#${at?.visit}`, ...facts, ...happened.outcome } };
    }
  }
}

function endOf({ output = null, ...ended }: ChildEnded): ChildEnd {
  const { key } = ended;
  switch (ended.status) {
    case "completed":
      return { key, turns: 0, status: "completed", output };
    case "skipped":
      return { key, turns: 0, status: "skipped" };
    default:
      return { key, turns: 0, status: ended.status, code: ended.code, message: ended.message };
  }
}

function effectExpected(machine: Machine, effect: ExpectedEffect, after: RunState): JsonObject {
  switch (effect.kind) {
    case "enter":
      return plain(effect);
    case "return":
      return { kind: "return" };
    case "stay":
      return { kind: "stay", legal: plain(expectedEvents(machine, after.at?.state ?? "")) };
    case "approve":
      return plain({ kind: "approve", message: effect.message });
    case "fanOut":
      return plain(effect);
    case "end":
      return plain({ kind: "end", end: effect.end, limit: effect.limit, state: effect.state });
  }
}

function effectSeen(effect: Effect): JsonObject {
  switch (effect.kind) {
    case "enter":
      return plain({ kind: "enter", state: effect.state, input: effect.input });
    case "return":
      return { kind: "return" };
    case "stay":
      return {
        kind: "stay",
        legal: effect.legal.map(({ event, targets }) => ({
          event,
          approvals: targets.map(({ approval }) => approval),
        })),
      };
    case "approve":
      return plain({ kind: "approve", message: effect.message });
    case "fanOut":
      return { kind: "fanOut", children: plain(effect.children) };
    case "end": {
      const { end } = effect;
      const limit = end.status === "failed" ? end.limit : undefined;
      const shown: End =
        end.status === "completed"
          ? { status: end.status, output: end.output }
          : end.status === "failed"
            ? { status: end.status, code: end.code, message: end.message }
            : { status: end.status, code: "cancelled", message: end.reason };
      return plain({ kind: "end", end: shown, limit, state: end.state });
    }
  }
}

function mergesOf(data: JsonObject | undefined): JsonObject | undefined {
  return data === undefined || Object.keys(data).length === 0 ? undefined : data;
}

/** As JSON has it: without what is undefined. */
function plain(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

/** What was seen without what the reference does not say: the words of Sluice's own ends, and traces of what no code decided. */
export function comparable(seen: StepSeen | undefined, { effect, trace }: StepSeen): StepSeen | undefined {
  if (seen === undefined) return undefined;
  const { trace: shown, ...rest } = seen;
  const end = field(seen.effect, "end");
  const wanted = field(effect, "end");
  const isWorded = isJsonObject(end) && isJsonObject(wanted) && !("message" in wanted);
  return {
    ...rest,
    ...(isWorded ? { effect: plain({ ...seen.effect, end: { ...end, message: undefined } }) } : {}),
    ...(trace === undefined || shown === undefined ? {} : { trace: shown }),
  };
}
