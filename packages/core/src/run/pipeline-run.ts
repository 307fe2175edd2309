import { SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject, textField } from "../base/json.ts";
import type { ProjectFacts } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { type GuardHook, mergedFaults } from "../definition/state-rules.ts";
import type { NamedGuard } from "../gate/guard-hooks.ts";
import { maskSecrets } from "../journal/redaction.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import { parseSiblingId, stepIds } from "../journal/step-id.ts";
import { apply, initialState, type MachineState, type MachineView } from "../machine/machine-state.ts";
import { fromRecordedStart, type RecordedStart, toRecordedStart } from "../machine/recorded-decision.ts";
import { decide } from "../machine/transition.ts";
import type { MachineEnd, MachineInput } from "../machine/transition-types.ts";
import { issuesText } from "../schema/issues.ts";
import type { ProjectReader, RunDeps } from "./deps.ts";
import type { Decided, PipelineInRun, RunningChildren, StartedChild } from "./execution.ts";
import { cancelReason, childMeter, type RunMeter, raceAbort } from "./limits/limits.ts";
import { mayWriteAll, type PreparedStates, prepareStates } from "./prepared-states.ts";
import { newAccount, runEndOf, siblingEndOf } from "./run-result.ts";
import { decideInRun } from "./stage/decide-route.ts";
import { decidesStart } from "./stage/recorded-phases.ts";
import { interruptsOf } from "./tool-calls/interrupts.ts";
import { acknowledgementOf } from "./walk/acknowledgement.ts";
import { stateOfChild } from "./walk/fan-out.ts";
import type { Walk } from "./walk/one-run.ts";
import { executeEntered, moveOf, perform, walkToEnd } from "./walk/walk.ts";

/** The program of a pipeline, from its initial state along its routes to an end; its children's runs have the same program. */
export function pipelineProgram(
  spec: PipelineSpec,
  deps: RunDeps,
  meter: RunMeter,
  states: PreparedStates = prepareStates(spec, deps.tools),
): RunProgram {
  // Created on first use: most runs have one pipeline.
  let others: Map<PipelineSpec, PreparedStates> | undefined;
  const prepare = (other: PipelineSpec): PreparedStates => {
    if (other === spec) return states;
    others ??= new Map();
    const known = others.get(other) ?? prepareStates(other, deps.tools);
    others.set(other, known);
    return known;
  };
  const running: RunningChildren = {};
  const root = inRun(spec, {
    deps,
    meter,
    providerFaults: deps.providerFaults ?? {},
    running,
    prepare,
    writesAll: () => mayWriteAll(spec),
    outerGuards: withGuard([], "session", deps.onCall),
  });
  return (steps, input) => {
    const { runId } = steps;
    if (!runId.includes("/")) return runRoot(root, steps, input);
    const of = parseSiblingId(runId);
    const child = of === undefined ? undefined : running.byStep?.get(`${of.parentId}/${of.fanOut}`);
    if (child !== undefined) return child(steps, input);
    const message = `run ${runId} reads from its parent, which does not run in this process`;
    throw new SluiceError("Host", "journal_mismatch", message);
  };
}

function inRun(
  spec: PipelineSpec,
  shared: Omit<PipelineInRun, "spec" | "guards" | "states" | "interrupts" | "runChild">,
): PipelineInRun {
  const own: PipelineInRun = {
    ...shared,
    spec,
    providerFaults: mergedFaults(spec, shared.providerFaults),
    guards: withGuard(shared.outerGuards, "pipeline", spec.onCall),
    states: shared.prepare(spec),
    interrupts: spec.interrupts.length === 0 ? [] : interruptsOf(spec),
    runChild: (child) => runChild(own, child),
  };
  return own;
}

async function runRoot(pipeline: PipelineInRun, steps: StepRunner, input: Json): Promise<ProgramEnd> {
  const { spec, deps } = pipeline;
  const project = deps.project === undefined ? undefined : await readProject(deps.project, deps, steps);
  const state = initialState(spec, { id: steps.runId, workspace: deps.workspace.root, input, project });
  const walk = walkOf(pipeline, steps, state);
  const end = await walkToEnd(walk, perform(walk, moveOf(walk, await decideStart(pipeline, steps, state))));
  const { orchestrator } = spec;
  const said = orchestrator === undefined ? undefined : await acknowledgementOf(walk, end, orchestrator);
  return runEndOf(walk.account, end, said);
}

function walkOf(pipeline: PipelineInRun, steps: StepRunner, state: MachineState): Walk {
  return { pipeline, steps, state, account: newAccount(), kept: Object.freeze({}) };
}

async function runFromStart(walk: Walk, start: Decided): Promise<ProgramEnd> {
  return runEndOf(walk.account, await walkToEnd(walk, perform(walk, moveOf(walk, start))));
}

/** One reading for the whole run, so that a resume, or a stage that changes the files, changes no later prompt. */
async function readProject(project: ProjectReader, { secrets }: RunDeps, steps: StepRunner): Promise<ProjectFacts> {
  const read = async (): Promise<ProjectFacts> => maskSecrets(await project.read(secrets), secrets);
  return await (project.recorded ? steps.run(stepIds.project, read) : read());
}

/** Recorded only where a schema reads the run's input, and for a run that starts in another state than the initial one. */
async function decideStart({ spec, deps }: PipelineInRun, steps: StepRunner, view: MachineView): Promise<Decided> {
  const { from } = deps;
  const input: MachineInput = from === undefined ? { kind: "start" } : { kind: "start", at: from };
  if (from === undefined && spec.states.get(spec.initial)?.inputSchema === undefined) {
    return { input, decision: await decide(spec, view, input) };
  }
  const start = async (): Promise<RecordedStart> =>
    toRecordedStart(await decideInRun({ spec, view, steps, deps }, input));
  // The caller chose where to start, and the events mask the input that it gave: a replay takes both from the record.
  const recorded = await steps.run(stepIds.initial, start, from === undefined ? { decides: decidesStart } : {});
  return { input, decision: fromRecordedStart(recorded) };
}

async function runChild(pipeline: PipelineInRun, child: StartedChild): Promise<ProgramEnd> {
  const { steps, input, slots } = child;
  const own = slots === undefined ? pipeline : inRun(pipeline.spec, { ...pipeline, deps: { ...pipeline.deps, slots } });
  switch (textField(input, "kind")) {
    case "branch":
      return await runBranch(walkOf(own, steps, stateOfChild(child)));
    case "invoke":
    case "run":
      return await runOther(own, child);
    default:
      return await runSibling(walkOf(own, steps, stateOfChild(child)));
  }
}

/** Runs one state without a route. Its result is the end of the child's run. */
async function runSibling(walk: Walk): Promise<ProgramEnd> {
  return siblingEndOf(await executeEntered(walk, false), walk.account);
}

/** Runs a branch from the state that it has entered to its terminal one. */
async function runBranch(walk: Walk): Promise<ProgramEnd> {
  return runEndOf(walk.account, branchEnd(walk, await walkToEnd(walk, executeEntered(walk, true))));
}

/** A cancel that a route of the branch chose is an end before its terminal state, which is a failure. */
function branchEnd({ steps, state: { terminal = "" } }: Walk, end: MachineEnd): MachineEnd {
  if (end.status !== "cancelled" || steps.signal.aborted) return end;
  const message = `the branch was cancelled before its terminal state ${terminal}: ${end.reason}`;
  return { status: "failed", code: "failed", message };
}

/** Runs another pipeline, with its own context, limits and states. */
async function runOther(parent: PipelineInRun, child: StartedChild): Promise<ProgramEnd> {
  const { steps, input, made } = child;
  const name = textField(input, "pipeline") ?? "";
  const spec = made?.spec ?? parent.spec.pipelines.get(name);
  if (spec === undefined) {
    const message = `pipeline ${parent.spec.id} has no pipeline ${name}; it is not the pipeline this run was started with`;
    throw new SluiceError("Host", "state_unknown", message);
  }
  if (textField(input, "made") !== made?.spec.fingerprint) {
    const message = `run ${steps.runId}: its pipeline ${name} was made during the run, and has changed`;
    throw new SluiceError("Validation", "pipeline_changed", message);
  }
  const meter = childMeter(child.meter ?? parent.meter, spec.limits, parent.deps.clock, steps.runId);
  const { outerGuards } = made ?? parent;
  const own = inRun(spec, { ...parent, outerGuards, meter });
  const { run, context } = startOfOther(child);
  const { state, start } = await checkedStart(own, child, run);
  apply(state, { context });
  const end = await runFromStart(walkOf(own, steps, state), start);
  const isRead = textField(input, "kind") === "run" && end.status === "completed" && isJsonObject(end.value);
  return isRead ? { ...end, value: { ...end.value, context: state.context } } : end;
}

function withGuard(guards: readonly NamedGuard[], name: string, hook: GuardHook | undefined): readonly NamedGuard[] {
  return hook === undefined ? guards : [...guards, { name, hook }];
}

/** The run's input of another pipeline, and what is merged into its context. An invoked one has the task of its parent. */
function startOfOther({ input, parent }: StartedChild): { readonly run: Json; readonly context: JsonObject } {
  const given = field(input, "input") ?? null;
  if (textField(input, "kind") === "run") {
    const context = field(input, "context");
    return { run: given, context: isJsonObject(context) ? context : {} };
  }
  if (!isJsonObject(given)) return { run: given, context: {} };
  const task = textField(parent.run.input, "task");
  return { run: { ...(task === undefined ? {} : { task }), ...given }, context: given };
}

/** The input of a child was not checked when the child was started, unlike that of a root. */
async function checkedStart(
  { spec, deps }: PipelineInRun,
  { steps, parent }: StartedChild,
  given: Json,
): Promise<{ readonly state: MachineState; readonly start: Decided }> {
  const input: MachineInput = { kind: "start" };
  const stateOf = (run: Json): MachineState => initialState(spec, { ...parent.run, id: steps.runId, input: run });
  const check = async (): Promise<StartOfOther> => {
    const checked = await raceAbort(steps.signal, Promise.resolve(spec.input.check(given)));
    if (checked === undefined) {
      const choice = { kind: "cancel", reason: cancelReason(steps.signal) ?? "cancelled" } as const;
      return { ok: true, choice, run: given };
    }
    if (!checked.value.ok) {
      const issues = issuesText(checked.value.issues);
      return { ok: false, reason: `the input of pipeline ${spec.id} does not fit its schema: ${issues}`, run: given };
    }
    const run = deps.secrets.json(checked.value.value);
    const view = stateOf(run);
    return { ...toRecordedStart(await decideInRun({ spec, view, steps, deps }, input)), run };
  };
  const started = await steps.run(stepIds.initial, check, { decides: decidesStart });
  const state = stateOf(started.run);
  // Without a schema it is the run's input itself, by which a prompt knows that it says nothing new.
  const isOwn = started.ok && started.choice.kind === "to" && spec.states.get(spec.initial)?.inputSchema === undefined;
  const decision = isOwn ? await decide(spec, state, input) : fromRecordedStart(started);
  return { state, start: { input, decision } };
}

/** What the first step of another pipeline's run records: `run` is its input, as its schema returns it. */
type StartOfOther = RecordedStart & { readonly run: Json };
