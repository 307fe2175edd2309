import { SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, numberField } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { compileEnvelope, envelopeOf } from "../gate/envelope.ts";
import { sharedData } from "../journal/redaction.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import { type ResolvedChoiceResult, resolveChoice } from "../machine/decide-next.ts";
import { DECIDES } from "./attempt.ts";
import { availableTools, type RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import type { Execution, ExecutionEnd } from "./execution.ts";
import { type FanOut, type FanOutChoice, type FanOutResult, routeFailedFanOut, runFanOut } from "./fan-out.ts";
import { addUsage, cancelReason, NO_USAGE, type RunMeter } from "./limits/limits.ts";
import { type RunAccount, runEndOf } from "./run-result.ts";
import { execute } from "./stage/execute.ts";

/** The states of a pipeline, prepared once for all its runs in a session. */
export type PreparedStates = ReadonlyMap<string, Pick<Execution, "state" | "envelope" | "offer" | "leftSetup">>;

/** Resolves the states of a pipeline against the session's live tools. */
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

/** The program of a pipeline, from its initial state along its routes to an end. A sibling's run executes only one state of it. */
export function pipelineProgram(
  spec: PipelineSpec,
  deps: RunDeps,
  meter: RunMeter,
  states: PreparedStates = prepareStates(spec, deps.tools),
): RunProgram {
  const run: RunSetup = { spec, deps, meter, states };
  return (steps, input) => {
    const sibling = field(input, "sibling");
    return typeof sibling === "string" && steps.runId.includes("/")
      ? runSibling(run, steps, sibling, input)
      : runRoutes(run, steps, input);
  };
}

/** What the executions of one run share. */
interface RunSetup extends Pick<Execution, "spec" | "deps" | "meter"> {
  readonly states: PreparedStates;
}

/** The progress of a run between two states. */
interface Walk extends RunAccount {
  readonly setup: RunSetup;
  readonly steps: StepRunner;
  readonly visited: Map<string, VisitCount>;
  run: RunState;
  /** Routes taken. */
  hops: number;
  fanOuts: number;
}
interface VisitCount {
  visits: number;
  turns: number;
}
interface NextEntry {
  readonly state: string;
  readonly input: Json;
}
type RunEnding = { readonly end: ProgramEnd };

/** Follows the routes until a choice ends the run. Iterative, since a run may have thousands of hops. */
async function runRoutes(setup: RunSetup, steps: StepRunner, runInput: Json): Promise<ProgramEnd> {
  const { spec } = setup;
  const walk: Walk = {
    setup,
    steps,
    stages: [],
    denied: [],
    usage: NO_USAGE,
    visited: new Map(),
    run: { runInput, upstream: {}, context: spec.context },
    hops: 0,
    fanOuts: 0,
  };
  const first = await initialInput(spec, steps, runInput);
  if (!first.ok) return runEndOf(walk, { kind: "fail", code: "input_invalid", reason: first.reason }, []);
  let entry: NextEntry = { state: spec.initial, input: first.choice.input };
  for (;;) {
    const { state, input } = entry;
    const stop = endBefore(walk, state);
    if (stop !== undefined) return stop.end;
    const { visits: visit, turns: turnsBefore } = visitsOf(walk, state);
    const execution = executionOf(setup, steps, state, walk.run, { input, visit, turnsBefore, routed: true });
    const next = await follow(walk, execution, await execute(execution));
    if ("end" in next) return next.end;
    entry = next;
  }
}

/** The run's input, as the initial state's schema returns it. */
async function initialInput(
  spec: PipelineSpec,
  steps: StepRunner,
  input: Json,
): Promise<
  { readonly ok: true; readonly choice: { readonly input: Json } } | Extract<ResolvedChoiceResult, { ok: false }>
> {
  const state = spec.initial;
  if (spec.states.get(state)?.inputSchema === undefined) return { ok: true, choice: { input } };
  const resolve = (): Promise<ResolvedChoiceResult> => resolveChoice({ kind: "to", state, input }, spec, null);
  const reading = await steps.run(stepIds.initial, resolve, DECIDES);
  if (!reading.ok) return reading;
  const { choice } = reading;
  return choice.kind === "to" ? { ok: true, choice } : { ok: false, reason: "the initial state takes no input" };
}

/** Counts a visit of a state. Returns the run's end if a cancel or a cap on hops or visits prevents it. */
function endBefore(walk: Walk, state: string): RunEnding | undefined {
  const cancelled = cancelledEnd(walk);
  if (cancelled !== undefined) return cancelled;
  const { limits, states } = walk.setup.spec;
  const { maxVisits = 10, maxHops = 10 * states.size } = limits;
  const count = visitsOf(walk, state);
  count.visits += 1;
  if (walk.hops > maxHops)
    return overLimit(walk, "limit_hops", "maxHops", `the run took ${maxHops} routes without an end`);
  if (count.visits > maxVisits)
    return overLimit(walk, "limit_visits", "maxVisits", `state ${state} was entered ${maxVisits} times`);
  return undefined;
}

function overLimit(walk: Walk, code: string, limit: string, message: string): RunEnding {
  const reached = { type: "limit.reached", data: { limit, message } } as const;
  return { end: runEndOf(walk, { kind: "fail", reason: message, code }, [reached]) };
}

/** Follows the choice of an execution, fan-outs included, to the next state or to the end of the run. */
async function follow(walk: Walk, execution: Execution, ended: ExecutionEnd): Promise<NextEntry | RunEnding> {
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
    // A decided end is not revised, even by a cancel after the decision.
    if (choice.kind !== "to" && choice.kind !== "fanOut") {
      return { end: runEndOf(walk, choice, [], next.by === "default" ? result : undefined) };
    }
    walk.hops += 1;
    if (choice.kind === "to") {
      const { fork: _joined, ...run } = walk.run;
      const context = choice.context === undefined ? run.context : { ...run.context, ...choice.context };
      walk.run = { ...run, context };
      return choice;
    }
    const forked = await throughFanOut(walk, choice);
    if ("end" in forked) return forked;
    if (forked.failed.length === 0) {
      walk.run = { ...walk.run, upstream: forked.upstream, fork: forked.outcomes };
      return { state: choice.join, input: choice.input };
    }
    ({ result, next } = await routeFailedFanOut(execution, result, forked, forked.fork, walk.run));
  }
}

async function throughFanOut(
  walk: Walk,
  choice: FanOutChoice,
): Promise<(FanOutResult & { readonly fork: FanOut }) | RunEnding> {
  for (const { state } of choice.siblings) {
    const stop = endBefore(walk, state);
    if (stop !== undefined) return stop;
  }
  walk.fanOuts += 1;
  const fork: FanOut = {
    id: stepIds.fanOut(walk.fanOuts),
    choice,
    visitOf: (state) => visitsOf(walk, state).visits,
    turnsOf: (state) => visitsOf(walk, state).turns,
  };
  const forked = await runFanOut(walk.setup.spec, walk.steps, walk.run, fork);
  for (const [key, child] of forked.children) addTo(walk, key, child);
  return cancelledEnd(walk) ?? { ...forked, fork };
}

function cancelledEnd(walk: Walk): RunEnding | undefined {
  const reason = cancelReason(walk.steps.signal);
  return reason === undefined ? undefined : { end: runEndOf(walk, { kind: "cancel", reason }, []) };
}

function visitsOf({ visited }: Walk, state: string): VisitCount {
  const known = visited.get(state) ?? { visits: 0, turns: 0 };
  visited.set(state, known);
  return known;
}

/** Runs one state without a route. Its result is the end of the sibling's run. */
async function runSibling(setup: RunSetup, steps: StepRunner, state: string, input: Json): Promise<ProgramEnd> {
  const context = field(input, "context");
  const upstream = field(input, "upstream");
  const run: RunState = {
    runInput: field(input, "run") ?? null,
    upstream: isJsonObject(upstream) ? upstream : {},
    context: isJsonObject(context) ? context : {},
  };
  const entry = {
    input: field(input, "input") ?? null,
    visit: numberField(input, "visit") ?? 1,
    turnsBefore: numberField(input, "turns") ?? 0,
    routed: false,
  };
  const { result, denied } = await execute(executionOf(setup, steps, state, run, entry));
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

function executionOf(
  { spec, deps, meter, states }: RunSetup,
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
  const { root: workspace } = deps.workspace;
  return { ...prepared, ...entry, runId: steps.runId, workspace, spec, stateId, executor, run, steps, deps, meter };
}

function addTo(walk: Walk, state: string, ended: ExecutionEnd): void {
  visitsOf(walk, state).turns += ended.result.turns;
  walk.stages.push(ended.result);
  walk.denied.push(...ended.denied);
  walk.usage = addUsage(walk.usage, ended.result.usage);
}
