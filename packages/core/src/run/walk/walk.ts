// The path of one run: performs what the machine decides until a decision ends it.
import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { StateEnvironment } from "../../definition/state-rules.ts";
import { apply, countOf, enteredOf } from "../../machine/machine-state.ts";
import { routeTargets } from "../../machine/route-targets.ts";
import { follow } from "../../machine/transition.ts";
import type { Effect, MachineEnd, MachineInput, Transition } from "../../machine/transition-types.ts";
import type { RunDeps } from "../deps.ts";
import type { Decided, Detours, Execution, ExecutionEnd } from "../execution.ts";
import { cancelReason } from "../limits/limits.ts";
import { approveRoute } from "../requests/approve-route.ts";
import { addTo } from "../run-result.ts";
import { execute } from "../stage/execute.ts";
import { type Detour, OwnDetours } from "./detours.ts";
import { runFanOut } from "./fan-out.ts";
import type { Walk } from "./one-run.ts";
import { admitChildren, runPipelines } from "./run-pipelines.ts";

/** What the run does next, unless it is cancelled first, and what has led to it. */
export interface Move {
  readonly of: MachineInput;
  readonly next: Transition;
}

/** Performs what the machine decides until a decision ends the run. Iterative, since a run may have thousands of hops. */
export async function walkToEnd(walk: Walk, next: Next): Promise<MachineEnd> {
  while (next instanceof Promise) {
    const ended = await next;
    next = perform(walk, "input" in ended ? moveOf(walk, ended) : moveAfter(walk, ended));
  }
  return next;
}

/** The end of a run, or the work before its next move. A promise holds no move, which would be kept while the run waits. */
type Next = Promise<Decided | ExecutionEnd> | MachineEnd;

/** Begins what a move does. */
export function perform(walk: Walk, move: Move): Next {
  const { effect, patch } = unlessCancelled(walk, move.next);
  if (effect.kind === "approve") return approved(walk, effect, move.of);
  apply(walk.state, patch);
  switch (effect.kind) {
    case "end":
      return effect.end;
    case "enter":
      return executeEntered(walk, true);
    case "fanOut":
      return runFanOut(walk, effect);
    default:
      throw new Error(`no execution is suspended, and the machine decided to ${effect.kind}`);
  }
}

export function moveOf({ pipeline, state }: Walk, { input, decision }: Decided): Move {
  return { of: input, next: follow(pipeline.spec, state, input, decision) };
}

/** A decided end is not revised, even by a cancel after the decision. */
function unlessCancelled({ pipeline, steps, state }: Walk, next: Transition): Transition {
  const reason = next.effect.kind === "end" ? undefined : cancelReason(steps.signal);
  return reason === undefined ? next : follow(pipeline.spec, state, { kind: "cancelled", reason }, undefined);
}

/** What the run does after an execution that has a route. */
function moveAfter(walk: Walk, ended: ExecutionEnd): Move {
  const { state, account } = walk;
  addTo(account, ended);
  const { stateId, result, next: decision, left } = ended;
  const of = { kind: "result", result } as const;
  if (left === undefined) return moveOf(walk, { input: of, decision });
  // The handler's move does not count the turns of the executions that it left.
  apply(state, { turns: [{ state: stateId, turns: result.turns }] });
  return { of, next: left };
}

/**
 * Runs the state that was entered last, along its detours, to its end. If a person interrupts it, the run is suspended, and the
 * state is entered again when it resumes.
 */
export async function executeEntered(walk: Walk, routed: boolean): Promise<ExecutionEnd> {
  for (;;) {
    const detours = detoursOf(walk);
    let ended: ExecutionEnd;
    try {
      ended = await execute(executionOf(walk, routed, detours));
    } finally {
      detours.close();
    }
    const { interrupted, result } = ended;
    if (interrupted === undefined || result.status !== "cancelled") return ended;
    if (interrupted.now) await walk.steps.suspend();
    addTo(walk.account, ended);
    const { now: _here, ...input } = interrupted;
    const next = follow(walk.pipeline.spec, walk.state, { kind: "interrupted", result, ...input }, undefined);
    apply(walk.state, next.patch);
  }
}

function detoursOf(walk: Walk): OwnDetours {
  const { pipeline, steps } = walk;
  // Of files that a pipeline names, or of a message to an orchestrator.
  const mayDetour = pipeline.interrupts.length > 0 || pipeline.spec.orchestrator !== undefined;
  const perform = mayDetour ? (decided: Decided) => detour(walk, decided) : noDetour;
  return new OwnDetours(steps, pipeline.deps.secrets, perform);
}

export function noDetour(): Promise<never> {
  return Promise.reject(new Error("the pipeline has no interrupts"));
}

/** Runs the handler of an interrupt. Any move but a return leaves the suspended execution, and is not made before that has ended. */
async function detour(walk: Walk, decided: Decided): Promise<Detour> {
  let move = moveOf(walk, decided);
  let by: StageResult<Json> | undefined;
  for (;;) {
    const next = unlessCancelled(walk, move.next);
    const { effect, patch } = next;
    if (effect.kind === "enter" && patch.suspend !== undefined) {
      apply(walk.state, patch);
      const ended = await executeEntered(walk, true);
      by = ended.result;
      move = moveAfter(walk, ended);
    } else if (effect.kind === "approve") {
      move = moveOf(walk, await approved(walk, effect, move.of));
    } else if (effect.kind === "return" && by !== undefined) {
      apply(walk.state, patch);
      return { kind: "returned", by };
    } else {
      const handler = by?.executionId ?? "the handler";
      return { kind: "left", next, reason: `interrupted, and ${handler} did not return` };
    }
  }
}

const NO_TARGETS: Execution["targets"] = Object.freeze([]);

/** The execution of the state that the run has entered. */
export function executionOf(walk: Walk, routed: boolean, detours: Detours): Execution {
  const { pipeline, steps, state: view, kept } = walk;
  const { spec, deps, meter, providerFaults, states, interrupts, guards, writesAll } = pipeline;
  const { state: stateId, visit } = enteredOf(view);
  const prepared = states.get(stateId);
  const executor = prepared === undefined ? undefined : deps.executors.get(prepared.state.kind);
  if (prepared === undefined || executor === undefined) {
    const message = `pipeline ${spec.id} has no runnable state ${stateId}; it is not the pipeline this run was started with`;
    throw new SluiceError("Host", "state_unknown", message);
  }
  const { state, envelope, offer, events, pauses, leftSetup } = prepared;
  const execution: Execution = {
    state,
    envelope,
    offer,
    events,
    pauses,
    leftSetup,
    runId: steps.runId,
    workspace: deps.workspace.root,
    stateId,
    visit,
    turnsBefore: countOf(view, stateId).turns,
    routed,
    spec,
    executor,
    view,
    targets: state.chooses === undefined ? NO_TARGETS : routeTargets(spec, view, state.chooses),
    steps,
    deps,
    env: environmentOf(deps.env, state.env),
    meter,
    providerFaults,
    interrupts,
    guards,
    writesAll,
    kept,
    detours,
    admit: (children) => admitChildren(walk, stateId, children),
    runChildren: (stepId, children, facts, around) => runPipelines(walk, stepId, stateId, children, facts, around),
  };
  // Only a message makes an orchestrator run while another execution waits.
  const isDetour = stateId === spec.orchestrator && view.suspended.length > 0;
  return isDetour ? { ...execution, returns: true } : execution;
}

/** The session's variables without those that the state blocks, and with those that it sets. */
function environmentOf(session: RunDeps["env"], own: StateEnvironment | undefined): RunDeps["env"] {
  if (own === undefined) return session;
  const { set = {}, block = [] } = own;
  const kept = Object.entries(session).filter(([name]) => !block.includes(name));
  return Object.freeze({ ...Object.fromEntries(kept), ...set });
}

/** Asks a person about the move that follows an execution or a fan-out. */
async function approved(
  { pipeline, steps, state }: Walk,
  effect: Extract<Effect, { readonly kind: "approve" }>,
  of: MachineInput,
): Promise<Decided> {
  return await approveRoute({ spec: pipeline.spec, deps: pipeline.deps, steps, view: state }, effect, of);
}
