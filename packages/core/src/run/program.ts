import { messageOf, SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { Failed, SiblingOutcome, StageResult } from "../definition/types.ts";
import { compileEnvelope } from "../gate/envelope.ts";
import type { EventDraft } from "../journal/events.ts";
import type { ChildRun, ProgramEnd, RunProgram, Settled, StepRunner } from "../journal/seam.ts";
import type { ResolvedChoice } from "../routing/choice.ts";
import { decideNext, type NextDecision } from "../routing/next.ts";
import type { Denied } from "./calls.ts";
import { type RunState, stageContext } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import { addUsage, type Execution, type ExecutionEnd, execute, routeEvents } from "./execution.ts";
import type { RunMeter } from "./limits.ts";
import { offerTools } from "./offer.ts";
import { endOf, type RunAccount } from "./outcome.ts";

type ForkChoice = Extract<ResolvedChoice, { readonly kind: "fanOut" }>;

/** The input of a sibling's run: everything it may know, as data. */
type ChildInput = JsonObject & { readonly sibling: string };

/** The program of a pipeline: from its initial state over routes to its end. A sibling's run is the same program with one state. */
export function pipelineProgram(spec: PipelineSpec, deps: RunDeps, meter: RunMeter): RunProgram {
  const states = new Map<string, PreparedState>();
  for (const [id, state] of spec.states) {
    const envelope = compileEnvelope(state.allowedTools);
    states.set(id, { state, envelope, offer: offerTools(envelope, deps.tools) });
  }
  const run: RunOf = { spec, deps, meter, states };
  return async (steps, input) => {
    const sibling = field(input, "sibling");
    return typeof sibling === "string" && steps.runId.includes("/")
      ? await runSibling(run, steps, sibling, input)
      : await runRoutes(run, steps, input);
  };
}

/** A state with what is compiled of it once a run. */
type PreparedState = Pick<Execution, "state" | "envelope" | "offer">;
/** What every state of one run shares. */
interface RunOf extends Pick<Execution, "spec" | "deps" | "meter"> {
  readonly states: ReadonlyMap<string, PreparedState>;
}

/** Follows the routes, one state after the other, until a choice ends the run. Iterative: a run may have thousands of hops. */
async function runRoutes(of: RunOf, steps: StepRunner, runInput: Json): Promise<ProgramEnd> {
  const { spec } = of;
  const account: RunAccount = { stages: [], denied: [], usage: { inputTokens: 0, outputTokens: 0 } };
  const visits = new Map<string, number>();
  const turns = new Map<string, number>();
  const maxVisits = spec.limits.maxVisits ?? 10;
  const maxHops = spec.limits.maxHops ?? 10 * spec.states.size;
  let run: RunState = { runInput, upstream: new Map(), context: spec.context };
  let at = { state: spec.initial, input: runInput };
  let forks = 0;

  const visit = (state: string): number => {
    const count = (visits.get(state) ?? 0) + 1;
    visits.set(state, count);
    return count;
  };

  for (let hops = 0; ; hops += 1) {
    if (steps.signal.aborted) return endOf(account, { kind: "cancel", reason: messageOf(steps.signal.reason) }, []);
    if (hops > maxHops) return overLimit(account, "maxHops", `the run took ${maxHops} routes without an end`);
    const count = visit(at.state);
    if (count > maxVisits) return overLimit(account, "maxVisits", `state ${at.state} was entered ${maxVisits} times`);

    const entry = { input: at.input, visit: count, turnsBefore: turns.get(at.state) ?? 0, routed: true };
    const execution = executionOf(of, steps, at.state, run, entry);
    const ended = await execute(execution);
    addTo(account, turns, at.state, ended);
    if (ended.result.status === "cancelled") return endOf(account, { kind: "cancel", reason: ended.result.reason }, []);
    run = passed(run, at.state, ended.result);
    let next = ended.next;

    if (next?.choice.kind === "fanOut") {
      forks += 1;
      const forked = await runFanOut(spec, steps, next.choice, forks, run, turns);
      for (const [key, child] of forked.children) addTo(account, turns, key, child);
      if (steps.signal.aborted) return endOf(account, { kind: "cancel", reason: messageOf(steps.signal.reason) }, []);
      if (forked.failed.length === 0) {
        run = { ...run, upstream: forked.upstream, fork: forked.outcomes };
        at = { state: next.choice.join, input: next.choice.input };
        continue;
      }
      next = await routeFailedFork(execution, ended.result, forked, forks, run);
    }
    if (next === undefined)
      return endOf(account, { kind: "fail", reason: `state ${at.state} ended without a choice` }, []);
    const { choice } = next;
    if (choice.kind !== "to") {
      // A failed fork may not fork again from its failure route: there would be two joins for one entry.
      if (choice.kind === "fanOut")
        return endOf(account, { kind: "fail", reason: `the failure route of ${at.state} forked again` }, []);
      return endOf(account, choice, [], next.by === "default" ? ended.result : undefined);
    }
    const { fork: _joined, ...unforked } = run;
    run = choice.context === undefined ? unforked : { ...unforked, context: { ...run.context, ...choice.context } };
    at = { state: choice.state, input: choice.input };
  }
}

/** One sibling: one state, no choice of its own; its result is its run's end. */
async function runSibling(of: RunOf, steps: StepRunner, state: string, input: Json): Promise<ProgramEnd> {
  const context = field(input, "context");
  const upstream = field(input, "upstream");
  const run: RunState = {
    runInput: field(input, "run") ?? null,
    upstream: new Map(isJsonObject(upstream) ? Object.entries(upstream) : []),
    context: isJsonObject(context) ? context : {},
  };
  const before = field(input, "turns");
  const turnsBefore = typeof before === "number" ? before : 0;
  const entry = { input: field(input, "input") ?? null, visit: 1, turnsBefore, routed: false };
  const ended = await execute(executionOf(of, steps, state, run, entry));
  const { result } = ended;
  const status =
    result.status === "failed" || result.status === "paused"
      ? "failed"
      : result.status === "cancelled"
        ? "cancelled"
        : "completed";
  return {
    status,
    value: { result, denied: ended.denied },
    events: [{ type: "run.finished", data: { status, state } }],
  };
}

function executionOf(
  { spec, deps, meter, states }: RunOf,
  steps: StepRunner,
  stateId: string,
  run: RunState,
  entry: Pick<Execution, "input" | "visit" | "turnsBefore" | "routed">,
): Execution {
  const prepared = states.get(stateId);
  const executor = prepared === undefined ? undefined : deps.executors.get(prepared.state.kind);
  if (prepared === undefined || executor === undefined) {
    throw new SluiceError(
      "Host",
      "state_unknown",
      `pipeline ${spec.id} has no runnable state ${stateId}; it is not the pipeline this run was started with`,
    );
  }
  const here = { runId: steps.runId, workspace: deps.workspace.root };
  return { ...here, ...entry, ...prepared, spec, stateId, executor, run, steps, deps, meter };
}

interface Forked {
  readonly children: ReadonlyMap<string, ExecutionEnd>;
  readonly outcomes: Readonly<Record<string, SiblingOutcome>>;
  readonly upstream: ReadonlyMap<string, Json>;
  /** Keys whose failure fails the fork; empty under `settle`. */
  readonly failed: readonly string[];
}

async function runFanOut(
  spec: PipelineSpec,
  steps: StepRunner,
  choice: ForkChoice,
  count: number,
  run: RunState,
  turns: ReadonlyMap<string, number>,
): Promise<Forked> {
  const keys = choice.siblings.map((sibling) => sibling.state);
  const children = choice.siblings.map(({ state, input }): ChildRun => {
    const childInput: ChildInput = {
      sibling: state,
      input,
      run: run.runInput,
      context: run.context,
      upstream: Object.fromEntries(run.upstream),
      turns: turns.get(state) ?? 0,
    };
    return {
      key: state,
      input: childInput,
      events: [{ type: "run.started", data: { pipeline: spec.id, state, parent: steps.runId } }],
    };
  });
  const settled = await steps.fork(`fan-${count}`, children, {
    onFailure: choice.onFailure,
    failed: (end) => end.status === "failed",
    open: { events: [{ type: "fork.started", data: { fork: `fan-${count}`, siblings: keys, join: choice.join } }] },
    joined: (ends) => [
      { type: "fork.joined", data: { fork: `fan-${count}`, outcomes: mapValues(ends, (end) => end.status) } },
    ],
  });

  const ended = new Map<string, ExecutionEnd>();
  const outcomes: Record<string, SiblingOutcome> = {};
  const upstream = new Map(run.upstream);
  for (const key of keys) {
    const end = settled[key];
    if (end === undefined) continue;
    const child = readSibling(end);
    if (child !== undefined) ended.set(key, child);
    outcomes[key] = outcomeOf(end, child);
    // Deleted first, so that outputs stand in declared order whatever was there before.
    upstream.delete(key);
    if (child?.result.status === "completed") upstream.set(key, child.result.output);
  }
  const failed = choice.onFailure === "settle" ? [] : keys.filter((key) => settled[key]?.status !== "completed");
  return { children: ended, outcomes, upstream, failed };
}

function readSibling(end: Settled): ExecutionEnd | undefined {
  if (field(end.value, "result") === undefined) return undefined;
  const { result, denied }: { result: StageResult<Json>; denied: readonly Denied[] } = JSON.parse(
    JSON.stringify(end.value),
  );
  return { result, denied, next: undefined };
}

function outcomeOf(end: Settled, child: ExecutionEnd | undefined): SiblingOutcome {
  const result = child?.result;
  if (result?.status === "completed" || result?.status === "skipped") return { status: result.status };
  if (result?.status === "failed") return { status: "failed", code: result.code, message: result.message };
  const reason = field(end.value, "reason");
  return {
    status: "cancelled",
    code: "cancelled",
    message: result?.status === "cancelled" ? result.reason : typeof reason === "string" ? reason : "cancelled",
  };
}

/** A failed fork is a failure of the state that forked: its own failure route decides, recorded like any other. */
async function routeFailedFork(
  execution: Execution,
  forking: StageResult<Json>,
  forked: Forked,
  count: number,
  run: RunState,
): Promise<NextDecision> {
  const { spec, stateId, steps } = execution;
  const reasons = forked.failed.map((key) => {
    const outcome = forked.outcomes[key];
    return outcome !== undefined && "message" in outcome ? `${key}: ${outcome.message}` : key;
  });
  // Siblings that were only cancelled because another failed are not what went wrong.
  const broken = forked.failed.filter((key) => forked.outcomes[key]?.status === "failed");
  const failed = broken.length > 0 ? broken : forked.failed;
  const { executionId, attempts, turns, usage, ms } = forking;
  const result: Failed = {
    executionId,
    attempts,
    turns,
    usage,
    ms,
    status: "failed",
    code: "fork",
    message: `parallel stages failed: ${reasons.join("; ")}`,
    detail: { fork: `fan-${count}`, failed: [...failed] },
  };
  const ctx = stageContext({ ...run, fork: forked.outcomes }, execution, attempts, null);
  return await steps.run(`fan-${count}/failed`, async (call): Promise<NextDecision> => {
    const next = await decideNext(spec, stateId, result, ctx);
    const event = (type: EventDraft["type"], data: JsonObject): EventDraft => ({
      type,
      executionId,
      attempt: attempts,
      data,
    });
    for (const draft of routeEvents({ event }, stateId, next)) call.event(draft);
    return next;
  });
}

function passed(run: RunState, state: string, result: StageResult<Json>): RunState {
  if (result.status !== "completed") return run;
  const upstream = new Map(run.upstream);
  upstream.set(state, result.output);
  return { ...run, upstream };
}

function addTo(account: RunAccount, turns: Map<string, number>, state: string, ended: ExecutionEnd): void {
  turns.set(state, (turns.get(state) ?? 0) + ended.result.turns);
  account.stages.push(ended.result);
  account.denied.push(...ended.denied);
  account.usage = addUsage(account.usage, ended.result.usage);
}

function overLimit(account: RunAccount, limit: string, message: string): ProgramEnd {
  return endOf(account, { kind: "fail", reason: message, code: `limit_${limit === "maxHops" ? "hops" : "visits"}` }, [
    { type: "limit.reached", data: { limit, message } },
  ]);
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, fn: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, fn(value)]));
}
