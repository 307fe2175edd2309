import { SluiceError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import type { NextDecision } from "../machine/decide-next.ts";
import { apply, countOf, enteredOf, initialState, type MachineView } from "../machine/machine-state.ts";
import { fromRecordedStart, type RecordedStart, toRecordedStart } from "../machine/recorded-decision.ts";
import { decide, type Effect, fanOutFailure, follow, type MachineInput } from "../machine/transition.ts";
import { AttemptJournal } from "./attempt.ts";
import type { RunDeps } from "./deps.ts";
import type { Execution } from "./execution.ts";
import { childRun, type RunningFanOuts, runFanOut } from "./fan-out.ts";
import { cancelReason, NO_USAGE, type RunMeter } from "./limits/limits.ts";
import { type PreparedStates, prepareStates } from "./prepared-states.ts";
import { addTo, type RunAccount, runEndOf } from "./run-result.ts";
import { execute } from "./stage/execute.ts";
import { decideInRun, decideRoute } from "./stage/leave.ts";
import { decidesRoute, decidesStart } from "./stage/recorded-phases.ts";

/** The program of a pipeline, from its initial state along its routes to an end. A child's run executes only one state of it. */
export function pipelineProgram(
  spec: PipelineSpec,
  deps: RunDeps,
  meter: RunMeter,
  states: PreparedStates = prepareStates(spec, deps.tools),
): RunProgram {
  const setup: RunSetup = { spec, deps, meter, states, fanOuts: undefined };
  return (steps, input) => {
    const child = childRun(setup.fanOuts, { runId: steps.runId, workspace: deps.workspace.root, input });
    if (child === undefined) return runRoutes(setup, steps, input);
    const { state, slots } = child;
    return runChild(slots === undefined ? setup : { ...setup, deps: { ...deps, slots } }, steps, state);
  };
}

/** What a run and its children share. */
interface RunSetup extends Pick<Execution, "spec" | "deps" | "meter"> {
  readonly states: PreparedStates;
  /** Created by the first one, since most runs have none. */
  fanOuts: RunningFanOuts | undefined;
}
/** What has happened, and what was decided about it; undefined where a cancel left nothing to decide. */
interface Decided {
  readonly input: MachineInput;
  readonly decision: NextDecision | undefined;
}

/** Performs what the machine decides until a decision ends the run. Iterative, since a run may have thousands of hops. */
async function runRoutes(setup: RunSetup, steps: StepRunner, runInput: Json): Promise<ProgramEnd> {
  const { spec, deps } = setup;
  const state = initialState(spec, { id: steps.runId, workspace: deps.workspace.root, input: runInput });
  const account: RunAccount = { stages: [], denied: [], usage: NO_USAGE };
  let decided = await decideStart(setup, steps, state);
  for (;;) {
    let next = follow(spec, state, decided.input, decided.decision);
    // A decided end is not revised, even by a cancel after the decision.
    const cancelled = next.effect.kind === "end" ? undefined : cancelReason(steps.signal);
    if (cancelled !== undefined) next = follow(spec, state, { kind: "cancelled", reason: cancelled }, undefined);
    apply(state, next.patch);
    const { effect } = next;
    switch (effect.kind) {
      case "end":
        return runEndOf(account, effect.end);
      case "enter": {
        const ended = await execute(executionOf(setup, steps, state, true));
        addTo(account, ended);
        decided = { input: { kind: "result", result: ended.result }, decision: ended.next };
        break;
      }
      case "fanOut":
        decided = await runChildren(setup, steps, state, account, effect);
        break;
      case "stay":
      case "approve":
      case "return":
        throw new SluiceError("Host", "machine_input", `this session cannot perform ${effect.kind}`);
    }
  }
}

/** Recorded only where a schema reads the run's input. */
async function decideStart({ spec, deps }: RunSetup, steps: StepRunner, view: MachineView): Promise<Decided> {
  const input: MachineInput = { kind: "start" };
  if (spec.states.get(spec.initial)?.inputSchema === undefined) {
    return { input, decision: await decide(spec, view, input) };
  }
  const start = async (): Promise<RecordedStart> =>
    toRecordedStart(await decideInRun({ spec, view, steps, deps }, input));
  const recorded = await steps.run(stepIds.initial, start, { decides: decidesStart });
  return { input, decision: fromRecordedStart(recorded) };
}

/** A failed fan-out is a failure of the state that started it, so that state's failure route decides. */
async function runChildren(
  setup: RunSetup,
  steps: StepRunner,
  view: MachineView,
  account: RunAccount,
  effect: Extract<Effect, { readonly kind: "fanOut" }>,
): Promise<Decided> {
  const { spec, deps } = setup;
  setup.fanOuts ??= new Map();
  const { ended, executions } = await runFanOut(spec, deps.slots, setup.fanOuts, steps, view, effect);
  for (const execution of executions) addTo(account, execution);
  const reason = cancelReason(steps.signal);
  if (reason !== undefined) return { input: { kind: "cancelled", reason }, decision: undefined };
  const input: MachineInput = { kind: "children", ended };
  const failure = fanOutFailure(view, ended);
  if (failure === undefined) return { input, decision: await decide(spec, view, input) };
  const { executionId, attempts } = failure;
  const journal = new AttemptJournal(steps, executionId, attempts);
  const decision = await steps.run(
    stepIds.failedFanOut(effect.fanOut.id),
    (call) => decideRoute({ spec, stateId: enteredOf(view).state, view, steps, deps }, journal, call, input),
    { decides: decidesRoute },
  );
  return { input, decision };
}

/** Runs one state without a route. Its result is the end of the child's run. */
async function runChild(setup: RunSetup, steps: StepRunner, view: MachineView): Promise<ProgramEnd> {
  const { result, denied } = await execute(executionOf(setup, steps, view, false));
  const status = childStatus(result);
  const data = { status, state: enteredOf(view).state };
  return { status, value: { result, denied }, events: [{ type: "run.finished", data }] };
}

function childStatus({ status }: StageResult<Json>): ProgramEnd["status"] {
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

/** The execution of the state that the run has entered. */
function executionOf(
  { spec, deps, meter, states }: RunSetup,
  steps: StepRunner,
  view: MachineView,
  routed: boolean,
): Execution {
  const { state: stateId, visit } = enteredOf(view);
  const prepared = states.get(stateId);
  const executor = prepared === undefined ? undefined : deps.executors.get(prepared.state.kind);
  if (prepared === undefined || executor === undefined) {
    const message = `pipeline ${spec.id} has no runnable state ${stateId}; it is not the pipeline this run was started with`;
    throw new SluiceError("Host", "state_unknown", message);
  }
  const { root: workspace } = deps.workspace;
  const own = { runId: steps.runId, workspace, stateId, visit, turnsBefore: countOf(view, stateId).turns, routed };
  return { ...prepared, ...own, spec, executor, view, steps, deps, meter };
}
