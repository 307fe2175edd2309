import { SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { compileEnvelope, envelopeOf } from "../gate/envelope.ts";
import { sharedData } from "../journal/redaction.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import { type ResolvedChoiceResult, resolveChoice } from "../machine/decide-next.ts";
import { DECIDES } from "./attempt-steps.ts";
import { availableTools, type RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import type { Execution, ExecutionEnd } from "./execution.ts";
import { type FanOut, type FanOutChoice, type FanOutResult, routeFailedFanOut, runFanOut } from "./fan-out.ts";
import { addUsage, cancelReason, NO_USAGE, type RunMeter } from "./limits/limits.ts";
import { type RunAccount, runEndOf } from "./run-result.ts";
import { execute } from "./stage/execute.ts";

/** What is the same in every run of a pipeline in one session, by state. */
export type PreparedStates = ReadonlyMap<string, Pick<Execution, "state" | "envelope" | "offer" | "leftSetup">>;

/** Sets the states of a pipeline against the session's live tools. */
export function prepareStates(spec: PipelineSpec, tools: RunDeps["tools"]): PreparedStates {
  return new Map(
    [...spec.states].map(([id, state]) => {
      const envelope = state.patterns === undefined ? compileEnvelope(state.allowedTools) : envelopeOf(state.patterns);
      const offer = availableTools(envelope, tools);
      const names = offer.tools.filter((tool) => tool.allowed).map((tool) => tool.name);
      return [id, { state, envelope, offer, leftSetup: sharedData({ phase: "left", tools: names }) }];
    }),
  );
}

/** The program of a pipeline: from its initial state over routes to its end. A sibling's run is the same program with one state. */
export function pipelineProgram(
  spec: PipelineSpec,
  deps: RunDeps,
  meter: RunMeter,
  states: PreparedStates = prepareStates(spec, deps.tools),
): RunProgram {
  const run: RunOf = { spec, deps, meter, states };
  return (steps, input) => {
    const sibling = field(input, "sibling");
    return typeof sibling === "string" && steps.runId.includes("/")
      ? runSibling(run, steps, sibling, input)
      : runRoutes(run, steps, input);
  };
}

/** What every state of one run shares. */
interface RunOf extends Pick<Execution, "spec" | "deps" | "meter"> {
  readonly states: PreparedStates;
}

/** Where a run stands between two states, and what it has added up. */
interface Walk extends RunAccount {
  readonly of: RunOf;
  readonly steps: StepRunner;
  readonly seen: Map<string, Seen>;
  run: RunState;
  /** Routes taken. */
  hops: number;
  forks: number;
}
/** What a run knows of the entries of one state. */
interface Seen {
  visits: number;
  turns: number;
}
interface At {
  readonly state: string;
  readonly input: Json;
}
type Ending = { readonly end: ProgramEnd };
type Step = { readonly at: At } | Ending;

/** Follows the routes, one state after the other, until a choice ends the run. Iterative: a run may have thousands of hops. */
async function runRoutes(of: RunOf, steps: StepRunner, runInput: Json): Promise<ProgramEnd> {
  const { spec } = of;
  const walk: Walk = {
    of,
    steps,
    stages: [],
    denied: [],
    usage: NO_USAGE,
    seen: new Map(),
    run: { runInput, upstream: {}, context: spec.context },
    hops: 0,
    forks: 0,
  };
  const first = await initialInput(spec, steps, runInput);
  if (!first.ok) return runEndOf(walk, { kind: "fail", code: "input_invalid", reason: first.reason }, []);
  let at: At = { state: spec.initial, input: first.input };
  for (;;) {
    const execution = entryTo(walk, at);
    if ("end" in execution) return execution.end;
    const step = await follow(walk, execution, await execute(execution));
    if ("end" in step) return step.end;
    at = step.at;
  }
}

/** The initial state's input is the run's, as its own schema takes it. */
async function initialInput(
  spec: PipelineSpec,
  steps: StepRunner,
  runInput: Json,
): Promise<{ readonly ok: true; readonly input: Json } | { readonly ok: false; readonly reason: string }> {
  if (spec.states.get(spec.initial)?.inputSchema === undefined) return { ok: true, input: runInput };
  const reading = await steps.run(
    stepIds.initial,
    (): Promise<ResolvedChoiceResult> =>
      resolveChoice({ kind: "to", state: spec.initial, input: runInput }, spec, null),
    DECIDES,
  );
  if (!reading.ok) return reading;
  return reading.choice.kind === "to"
    ? { ok: true, input: reading.choice.input }
    : { ok: false, reason: "the initial state takes no input" };
}

/** The next entry into a state, unless the run ends before it. */
function entryTo(walk: Walk, { state, input }: At): Execution | Ending {
  const stop = cancelledEnd(walk) ?? overCap(walk, state);
  if (stop !== undefined) return stop;
  const { visits, turns } = seenOf(walk, state);
  return executionOf(walk.of, walk.steps, state, walk.run, { input, visit: visits, turnsBefore: turns, routed: true });
}

/**
 * Takes what a state came to, and follows its choice to the next state or to the end of the run, forks included. A fork that
 * failed is asked about again, as a failure.
 */
async function follow(walk: Walk, execution: Execution, ended: ExecutionEnd): Promise<Step> {
  const { stateId } = execution;
  let { result, next } = ended;
  addTo(walk, stateId, ended);
  if (result.status === "cancelled") return { end: runEndOf(walk, { kind: "cancel", reason: result.reason }, []) };
  if (result.status === "completed") {
    walk.run = { ...walk.run, upstream: { ...walk.run.upstream, [stateId]: result.output } };
  }
  for (;;) {
    if (next === undefined) {
      const reason = `state ${stateId} ended without a choice`;
      return { end: runEndOf(walk, { kind: "fail", reason }, []) };
    }
    const { choice } = next;
    // An end that was decided stands, whatever came after the decision.
    if (choice.kind !== "to" && choice.kind !== "fanOut") {
      return { end: runEndOf(walk, choice, [], next.by === "default" ? result : undefined) };
    }
    walk.hops += 1;
    if (choice.kind === "to") {
      const { fork: _joined, ...run } = walk.run;
      const context = choice.context === undefined ? run.context : { ...run.context, ...choice.context };
      walk.run = { ...run, context };
      return { at: choice };
    }
    const forked = await throughFork(walk, choice);
    if ("end" in forked) return forked;
    if (forked.failed.length === 0) {
      walk.run = { ...walk.run, upstream: forked.upstream, fork: forked.outcomes };
      return { at: { state: choice.join, input: choice.input } };
    }
    ({ result, next } = await routeFailedFanOut(execution, result, forked, forked.fork, walk.run));
  }
}

async function throughFork(
  walk: Walk,
  choice: FanOutChoice,
): Promise<(FanOutResult & { readonly fork: FanOut }) | Ending> {
  const { of, steps } = walk;
  for (const { state } of choice.siblings) {
    const stop = cancelledEnd(walk) ?? overCap(walk, state);
    if (stop !== undefined) return stop;
  }
  walk.forks += 1;
  const fork: FanOut = {
    id: stepIds.fanOut(walk.forks),
    choice,
    visitOf: (state) => seenOf(walk, state).visits,
    turnsOf: (state) => seenOf(walk, state).turns,
  };
  const forked = await runFanOut(of.spec, steps, walk.run, fork);
  for (const [key, child] of forked.children) addTo(walk, key, child);
  return cancelledEnd(walk) ?? { ...forked, fork };
}

function cancelledEnd(walk: Walk): Ending | undefined {
  const reason = cancelReason(walk.steps.signal);
  return reason === undefined ? undefined : { end: runEndOf(walk, { kind: "cancel", reason }, []) };
}

/** Counts an entry; the end of the run when a cap says so. Caps are failures, never silent successes. */
function overCap(walk: Walk, state: string): Ending | undefined {
  const { spec } = walk.of;
  const maxVisits = spec.limits.maxVisits ?? 10;
  const maxHops = spec.limits.maxHops ?? 10 * spec.states.size;
  const seen = seenOf(walk, state);
  seen.visits += 1;
  if (walk.hops > maxHops) return overLimit(walk, "maxHops", `the run took ${maxHops} routes without an end`);
  if (seen.visits > maxVisits) return overLimit(walk, "maxVisits", `state ${state} was entered ${maxVisits} times`);
  return undefined;
}

function seenOf({ seen }: Walk, state: string): Seen {
  const known = seen.get(state) ?? { visits: 0, turns: 0 };
  seen.set(state, known);
  return known;
}

function overLimit(walk: Walk, limit: "maxHops" | "maxVisits", message: string): Ending {
  const code = limit === "maxHops" ? "limit_hops" : "limit_visits";
  const reached = { type: "limit.reached", data: { limit, message } } as const;
  return { end: runEndOf(walk, { kind: "fail", reason: message, code }, [reached]) };
}

/** One sibling: one state, no choice of its own; its result is its run's end. */
async function runSibling(of: RunOf, steps: StepRunner, state: string, input: Json): Promise<ProgramEnd> {
  const context = field(input, "context");
  const upstream = field(input, "upstream");
  const run: RunState = {
    runInput: field(input, "run") ?? null,
    upstream: isJsonObject(upstream) ? upstream : {},
    context: isJsonObject(context) ? context : {},
  };
  const entry = {
    input: field(input, "input") ?? null,
    visit: countOf(field(input, "visit"), 1),
    turnsBefore: countOf(field(input, "turns"), 0),
    routed: false,
  };
  const { result, denied } = await execute(executionOf(of, steps, state, run, entry));
  const status = siblingStatus(result);
  return { status, value: { result, denied }, events: [{ type: "run.finished", data: { status, state } }] };
}

function siblingStatus({ status }: StageResult<Json>): ProgramEnd["status"] {
  switch (status) {
    case "completed":
    case "skipped":
      return "completed";
    case "failed":
    case "paused":
      return "failed";
    case "cancelled":
      return "cancelled";
  }
}

function countOf(value: Json | undefined, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
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
    const message = `pipeline ${spec.id} has no runnable state ${stateId}; it is not the pipeline this run was started with`;
    throw new SluiceError("Host", "state_unknown", message);
  }
  const { state, envelope, offer, leftSetup } = prepared;
  const { input, visit, turnsBefore, routed } = entry;
  return {
    runId: steps.runId,
    workspace: deps.workspace.root,
    input,
    visit,
    spec,
    stateId,
    state,
    executor,
    envelope,
    offer,
    leftSetup,
    run,
    steps,
    deps,
    meter,
    routed,
    turnsBefore,
  };
}

function addTo(walk: Walk, state: string, ended: ExecutionEnd): void {
  seenOf(walk, state).turns += ended.result.turns;
  walk.stages.push(ended.result);
  walk.denied.push(...ended.denied);
  walk.usage = addUsage(walk.usage, ended.result.usage);
}
