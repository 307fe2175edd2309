import { isSluiceError, messageOf } from "../base/errors.ts";
import { type Json, type JsonObject, jsonFault } from "../base/json.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type {
  AssertAnswer,
  Completed,
  Failed,
  FailureCode,
  GateAnswer,
  StageContext,
  StageResult,
  Usage,
} from "../definition/types.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { StepRunner } from "../journal/seam.ts";
import { decideNext, type NextDecision } from "../routing/next.ts";
import type { Denied } from "./calls.ts";
import { type Entry, type RunState, stageContext } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import type { ActOutcome, Offer, StateExecutor } from "./executor.ts";
import { createLimits, createStopwatch, type Limits, type RunMeter } from "./limits.ts";
import { createPlace, type Place } from "./place.ts";
import { createScope } from "./scope.ts";
import { type AttemptJournal, createAttemptJournal } from "./scoped-steps.ts";

/** One entry into one state. */
export interface Execution extends Entry {
  readonly spec: PipelineSpec;
  readonly stateId: string;
  readonly state: StateSpec;
  readonly executor: StateExecutor;
  /** Compiled once a run; undefined for a state without allowedTools. */
  readonly envelope: Envelope | undefined;
  readonly offer: Offer;
  readonly run: RunState;
  readonly steps: StepRunner;
  readonly deps: RunDeps;
  readonly meter: RunMeter;
  /** A sibling's route is its parent's join: it makes no choice of its own. */
  readonly routed: boolean;
  /** Turns this state took in earlier visits. */
  readonly turnsBefore: number;
}
export interface ExecutionEnd {
  readonly result: StageResult<Json>;
  readonly next: NextDecision | undefined;
  readonly denied: readonly Denied[];
}

const HOOK_MS = 5_000;
const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0 };

/** What the enter step found; recorded, so that hooks and prompts are not asked again on resume. */
type Entered =
  | {
      readonly kind: "ready";
      readonly at: number;
      readonly setup: Json;
      readonly init: Json;
      readonly gate: GateAnswer;
    }
  | { readonly kind: "failed"; readonly at: number; readonly code: FailureCode; readonly message: string };
/** What the leave step decided. */
type Left =
  | { readonly kind: "retry"; readonly feedback: string }
  | { readonly kind: "left"; readonly result: StageResult<Json>; readonly next: NextDecision | null };

/** Runs a state to its result: attempts of Setup, Init, CheckGate, Act, Assert; then Exit and Next, once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const { state, steps, deps, stateId, visit } = execution;
  const executionId = `${stateId}#${visit}`;
  const watch = createStopwatch(deps.clock);
  const limits = createLimits(state.limits ?? {}, execution.meter, deps.clock, watch);
  const place = createPlace(deps.slots, [watch, execution.meter.work], steps.signal);
  const maxAttempts = state.retryPolicy?.maxAttempts ?? 3;
  const denied: Denied[] = [];
  const spent = { turns: 0, usage: NO_USAGE };
  let startedAt: number | undefined;
  let feedback: string | undefined;
  try {
    for (let attempt = 1; ; attempt += 1) {
      await place.take();
      const journal = createAttemptJournal(steps, executionId, attempt);
      const entered = await enter(execution, journal, attempt, feedback);
      startedAt ??= entered.at;
      const setup = entered.kind === "ready" ? entered.setup : null;
      const ctx = stageContext(execution.run, execution, attempt, setup, feedback);
      const turnsBefore = execution.turnsBefore + spent.turns;
      const outcome = await actOn({ ...execution, turnsBefore }, journal, entered, ctx, limits, place, denied);
      if (outcome !== "skipped") {
        spent.turns += outcome.turns;
        spent.usage = addUsage(spent.usage, outcome.usage);
      }
      const base = { executionId, attempts: attempt, turns: spent.turns, usage: spent.usage, startedAt };
      const left = await leave(execution, journal, ctx, outcome, base, attempt < maxAttempts);
      if (left.kind === "left") return { result: left.result, next: left.next ?? undefined, denied };
      feedback = left.feedback;
    }
  } finally {
    place.leave();
  }
}

/** Setup, Init and CheckGate, in one record: everything up to the first model call. */
function enter(
  execution: Execution,
  journal: AttemptJournal,
  attempt: number,
  feedback: string | undefined,
): Promise<Entered> {
  const { state, executor, deps, offer } = execution;
  return journal.steps.run("enter", async (call): Promise<Entered> => {
    const note = (type: "stage.setup" | "stage.init" | "stage.gate" | "attempt.started", data: JsonObject): void =>
      call.event(journal.event(type, data));
    const at = deps.clock.now();
    note("attempt.started", { attempt, visit: execution.visit, ...(feedback === undefined ? {} : { feedback }) });
    note("stage.setup", { phase: "entered" });
    try {
      const before = stageContext(execution.run, execution, attempt, null, feedback);
      const setup = deps.secrets.json(checkedJson(await state.setup?.(before), "setup"));
      note("stage.setup", {
        phase: "left",
        tools: offer.tools.filter((tool) => tool.allowed).map((tool) => tool.name),
      });
      const ctx = stageContext(execution.run, execution, attempt, setup, feedback);
      note("stage.init", { phase: "entered" });
      const init = checkedJson(executor.init?.(state, ctx, offer), "init");
      note("stage.init", { phase: "left" });
      note("stage.gate", { phase: "entered" });
      const gate: GateAnswer = (await state.checkGate?.(ctx)) ?? "proceed";
      note("stage.gate", { phase: "left", answer: typeof gate === "string" ? gate : "retry" });
      return { kind: "ready", at, setup, init, gate };
    } catch (thrown) {
      return { kind: "failed", at, code: "hook", message: hookFault(thrown) };
    }
  });
}

async function actOn(
  execution: Execution,
  journal: AttemptJournal,
  entered: Entered,
  ctx: StageContext,
  limits: Limits,
  place: Place,
  denied: Denied[],
): Promise<ActOutcome | "skipped"> {
  if (entered.kind === "failed")
    return { status: "failed", code: entered.code, message: entered.message, turns: 0, usage: NO_USAGE };
  const gate = await passGate(execution, journal, entered.gate, ctx, place);
  if (gate !== "proceed") return gate;
  journal.note("stage.act", { phase: "entered" });
  const outcome = await execution.executor.act(
    entered.init,
    createScope({ execution, journal, ctx, place, limits }, denied),
  );
  journal.note("stage.act", { phase: "left", outcome: outcome.status });
  return outcome;
}

/** A gate that asks for later is asked again after a durable wait, up to the attempts the state has. */
async function passGate(
  execution: Execution,
  journal: AttemptJournal,
  first: GateAnswer,
  ctx: StageContext,
  place: Place,
): Promise<"proceed" | "skipped" | ActOutcome> {
  const tries = execution.state.retryPolicy?.maxAttempts ?? 3;
  let answer: GateAnswer | { readonly failed: string } = first;
  for (let asked = 1; ; asked += 1) {
    if (answer === "proceed") return "proceed";
    if (answer === "skip") return "skipped";
    if ("failed" in answer) return failedAct("hook", answer.failed);
    if (asked >= tries) return failedAct("gate", `checkGate asked to wait ${tries} times and never said proceed`);
    const waitMs = Math.max(0, answer.retryAfterMs);
    const now = await journal.steps.now(`gate/${asked}/now`);
    await place.whileFree(() => journal.steps.sleepUntil(`gate/${asked}/sleep`, now + waitMs));
    if (execution.steps.signal.aborted) return cancelledAct(execution.steps.signal);
    answer = await journal.steps.run(
      `gate/${asked}`,
      async (call): Promise<GateAnswer | { readonly failed: string }> => {
        call.event(journal.event("stage.gate", { phase: "entered" }));
        try {
          const again: GateAnswer = (await execution.state.checkGate?.(ctx)) ?? "proceed";
          call.event(
            journal.event("stage.gate", { phase: "left", answer: typeof again === "string" ? again : "retry" }),
          );
          return again;
        } catch (thrown) {
          return { failed: hookFault(thrown) };
        }
      },
    );
  }
}

interface ResultBase {
  readonly executionId: string;
  readonly attempts: number;
  readonly turns: number;
  readonly usage: Usage;
  readonly startedAt: number;
}

/** Assert, and when there is no further attempt Exit and Next: one record. */
function leave(
  execution: Execution,
  journal: AttemptJournal,
  ctx: StageContext,
  outcome: ActOutcome | "skipped",
  spent: ResultBase,
  attemptsLeft: boolean,
): Promise<Left> {
  const { state, spec, deps, stateId } = execution;
  return journal.steps.run("leave", async (call): Promise<Left> => {
    const note = (type: Parameters<AttemptJournal["event"]>[0], data: JsonObject): void =>
      call.event(journal.event(type, data));
    const { startedAt, ...counted } = spent;
    const base = { ...counted, ms: deps.clock.now() - startedAt };
    let result: StageResult<Json> = outcome === "skipped" ? { ...base, status: "skipped" } : asResult(base, outcome);
    if (result.status === "completed" || result.status === "failed") {
      note("stage.assert", { phase: "entered" });
      const answer = await askAssert(state, result, ctx);
      note("stage.assert", {
        phase: "left",
        answer: typeof answer === "string" ? answer : "retry" in answer ? "retry" : "fail",
      });
      if (answer !== "ok" && "retry" in answer && attemptsLeft) {
        note("attempt.finished", { outcome: "retry", feedback: answer.retry });
        return { kind: "retry", feedback: answer.retry };
      }
      if (answer !== "ok") {
        const message = "retry" in answer ? `no attempt is left: ${answer.retry}` : answer.fail;
        const code = "hook" in answer ? "hook" : "assert";
        result = { ...base, status: "failed", code, message };
      }
    }
    note("attempt.finished", { outcome: result.status, ...(result.status === "failed" ? { code: result.code } : {}) });
    note("stage.exit", { phase: "entered" });
    const fault = await runExit(state, result, ctx, deps);
    if (fault !== undefined && (result.status === "completed" || result.status === "skipped")) {
      result = { ...base, status: "failed", code: "hook", message: fault };
    }
    note("stage.exit", { phase: "left", outcome: result.status, ...(fault === undefined ? {} : { fault }) });
    if (!execution.routed || result.status === "cancelled") return { kind: "left", result, next: null };
    note("stage.next", { phase: "entered" });
    const next = await decideNext(spec, stateId, result, ctx);
    for (const draft of routeEvents(journal, stateId, next)) call.event(draft);
    note("stage.next", { phase: "left", choice: next.choice.kind });
    return { kind: "left", result, next };
  });
}

/** The events of one decision: what was decided, by whom, and what it changes. */
export function routeEvents(journal: Pick<AttemptJournal, "event">, from: string, next: NextDecision) {
  const { choice, ...rest } = next;
  const target: JsonObject =
    choice.kind === "to"
      ? { to: choice.state }
      : choice.kind === "fanOut"
        ? { to: choice.siblings.map((sibling) => sibling.state), join: choice.join }
        : choice.kind === "done"
          ? {}
          : { reason: choice.reason };
  const why: Json = JSON.parse(JSON.stringify(rest));
  const drafts = [];
  if (next.rejected !== undefined) drafts.push(journal.event("route.rejected", { from, reason: next.rejected }));
  drafts.push(journal.event("route.decided", { from, choice: choice.kind, ...target, why }));
  if (choice.kind === "to" && choice.context !== undefined)
    drafts.push(journal.event("context.changed", { patch: choice.context }));
  return drafts;
}

async function askAssert(
  state: StateSpec,
  result: Completed<Json> | Failed,
  ctx: StageContext,
): Promise<AssertAnswer | { readonly fail: string; readonly hook: true }> {
  if (state.assert === undefined) return "ok";
  try {
    return await state.assert(result, ctx);
  } catch (thrown) {
    return { fail: hookFault(thrown), hook: true };
  }
}

/** Teardown has five seconds: a hook that hangs must not keep a cancelled run alive. */
async function runExit(
  state: StateSpec,
  result: StageResult<Json>,
  ctx: StageContext,
  deps: RunDeps,
): Promise<string | undefined> {
  if (state.exit === undefined) return undefined;
  let disarm: (() => void) | undefined;
  try {
    const late = new Promise<string>((resolve) => {
      disarm = deps.clock.after(HOOK_MS, () => resolve(`the exit hook did not end within ${HOOK_MS} ms`));
    });
    const done = Promise.resolve(state.exit(result, ctx)).then(() => undefined);
    return await Promise.race([done, late]);
  } catch (thrown) {
    return hookFault(thrown);
  } finally {
    disarm?.();
  }
}

function asResult(
  base: Omit<ResultBase, "startedAt"> & { readonly ms: number },
  outcome: ActOutcome,
): StageResult<Json> {
  switch (outcome.status) {
    case "completed":
      return { ...base, status: "completed", output: outcome.output };
    case "failed":
      return {
        ...base,
        status: "failed",
        code: outcome.code,
        message: outcome.message,
        ...(outcome.detail === undefined ? {} : { detail: outcome.detail }),
      };
    case "cancelled":
      return { ...base, status: "cancelled", reason: outcome.reason };
  }
}

export function addUsage(a: Usage, b: Usage): Usage {
  return { inputTokens: a.inputTokens + b.inputTokens, outputTokens: a.outputTokens + b.outputTokens };
}

function failedAct(code: FailureCode, message: string): ActOutcome {
  return { status: "failed", code, message, turns: 0, usage: NO_USAGE };
}

export function cancelledAct(signal: AbortSignal): ActOutcome {
  return { status: "cancelled", reason: messageOf(signal.reason), turns: 0, usage: NO_USAGE };
}

function hookFault(thrown: unknown): string {
  return isSluiceError(thrown) ? thrown.message : `a hook threw: ${messageOf(thrown)}`;
}

function checkedJson(value: Json | undefined, where: string): Json {
  if (value === undefined) return null;
  const fault = jsonFault(value);
  if (fault !== undefined) throw new TypeError(`${where} returned something that is not JSON: ${fault}`);
  return value;
}
