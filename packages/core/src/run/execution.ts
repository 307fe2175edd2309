import { type Json, type JsonObject, numberField, textField } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { GuardHook, ProviderFaultOptions } from "../definition/state-rules.ts";
import type { DenialCause } from "../gate/denial.ts";
import type { NamedGuard } from "../gate/guard-hooks.ts";
import type { WatchedFiles } from "../gate/subjects.ts";
import type { EventDraft } from "../journal/events.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../machine/decide-next.ts";
import type { MachineView, ParentView } from "../machine/machine-state.ts";
import type { RouteTarget } from "../machine/route-targets.ts";
import type { MachineInput, Transition } from "../machine/transition-types.ts";
import type { RunDeps } from "./deps.ts";
import type { ChildOutcome, ChildPipeline, StateExecutor } from "./executor.ts";
import type { ConcurrencySlots } from "./limits/concurrency-slot.ts";
import type { RunMeter } from "./limits/limits.ts";
import type { PreparedState, PreparedStates } from "./prepared-states.ts";

/** A pipeline as the runs of one tree execute it. */
export interface PipelineInRun {
  readonly spec: PipelineSpec;
  readonly deps: RunDeps;
  readonly meter: RunMeter;
  /** Of the pipeline, of those around it, and of the session. */
  readonly providerFaults: ProviderFaultOptions;
  readonly states: PreparedStates;
  readonly interrupts: readonly Interrupt[];
  /** The states of another pipeline, prepared once. */
  prepare(spec: PipelineSpec): PreparedStates;
  /** Whether a stage of the run's pipeline may write all files. */
  writesAll(): boolean;
  /** The hooks of the session, and of the pipelines and states that made this one, the outermost first. */
  readonly outerGuards: readonly NamedGuard[];
  /** The same with its own. */
  readonly guards: readonly NamedGuard[];
  readonly running: RunningChildren;
  /** Runs a child of one of its runs. */
  runChild(child: StartedChild): Promise<ProgramEnd>;
}
/** The children of a tree of runs that run in this process now, by `<run>/<step>`. The first creates the map: most runs have none. */
export interface RunningChildren {
  byStep?: Map<string, RunProgram>;
}
/** A child's run, which reads what its parent had when it started it. */
export interface StartedChild {
  readonly steps: StepRunner;
  /** As recorded. */
  readonly input: Json;
  readonly parent: ParentView;
  /** Of a list with a limit of its own. */
  readonly slots: ConcurrencySlots | undefined;
  /** Of the execution that started the run, if one did. */
  readonly meter?: RunMeter;
  /** Of a run whose pipeline a state made. */
  readonly made?: MadePipeline;
}

/** A pipeline that a state makes. */
export interface MadePipeline {
  readonly spec: PipelineSpec;
  /** The hooks around it, which read the context of the state that made it. */
  readonly outerGuards: readonly NamedGuard[];
}

/** An interrupt of a pipeline, which changed files start. */
export interface Interrupt extends WatchedFiles {
  readonly name: string;
}

/** An interrupt that a call started, with the files that matched; none if it is unknown what changed. A type, since it is recorded. */
export type MatchedInterrupt = { readonly interrupt: string; readonly files: readonly string[] };

/** What has happened, and what was decided about it; undefined where a cancel left nothing to decide. */
export interface Decided {
  readonly input: MachineInput;
  readonly decision: NextDecision | undefined;
}

/** One entry into one state. */
export interface Execution extends PreparedState {
  readonly runId: string;
  readonly workspace: string;
  readonly spec: PipelineSpec;
  readonly stateId: string;
  /** Counted from 1. */
  readonly visit: number;
  readonly executor: StateExecutor;
  /** The run, which has entered this state. */
  readonly view: MachineView;
  /** The states that this one may choose, as they were at the entry. */
  readonly targets: readonly RouteTarget[];
  readonly steps: StepRunner;
  readonly deps: RunDeps;
  /** The variables of the processes that its calls start. */
  readonly env: RunDeps["env"];
  readonly meter: RunMeter;
  readonly providerFaults: ProviderFaultOptions;
  readonly kept: object;
  /** An orchestrator answers a message while another execution sleeps. */
  readonly returns?: true;
  /** The run has ended, and this execution closes it. */
  readonly closing?: true;
  /** False for a child, which has no route: its parent's join follows. */
  readonly routed: boolean;
  /** Turns of this state in earlier visits. */
  readonly turnsBefore: number;
  readonly interrupts: readonly Interrupt[];
  readonly guards: PipelineInRun["guards"];
  readonly writesAll: PipelineInRun["writesAll"];
  readonly detours: Detours;
  /** Prepares the pipelines that children bring with them. */
  admit(children: readonly ChildPipeline[]): Promise<StartFacts>;
  /** Runs other pipelines as children, in a step of this name, after `admit`. */
  runChildren(
    stepId: string,
    children: readonly ChildPipeline[],
    facts: StartFacts,
    around: AroundChildren,
  ): Promise<readonly ChildOutcome[]>;
}

/** What an attempt puts around the pipelines that it runs. */
export interface AroundChildren {
  /** Binds a hook of the execution to the attempt. */
  hook(hook: GuardHook): GuardHook;
  readonly meter: RunMeter;
}

/** What the starts of children record in addition, by the keys of those that bring a pipeline. */
export type StartFacts = ReadonlyMap<string, JsonObject>;

/** The detours of one execution: an interrupt's handler runs while it waits. */
export interface Detours {
  /** Aborts when the run is cancelled, and when the handler of an interrupt does not return to this execution. */
  readonly signal: AbortSignal;
  /** The work of the executor, which is checked after the signal has aborted: each listener of a signal takes memory. */
  acting: { check(): void } | undefined;
  /** Resolves when the handler that works now ends. Set for good if it throws. */
  readonly handling: Promise<unknown> | undefined;
  /** What a handler threw, which stops the run even if the executor catches it. */
  readonly fault: { readonly thrown: unknown } | undefined;
  /** What the run does once this execution has ended, if a handler did not return to it. */
  readonly left: Transition | undefined;
  /** By whom and why a person interrupted this execution, which then ends as cancelled. */
  readonly interrupted: Interrupted | undefined;
  /** Runs the handler of an interrupt, which was decided about. */
  take(decided: Decided): Promise<DetourEnd>;
  /** From here on, a person may interrupt the execution; the event is recorded then. */
  watch(event: (data: JsonObject) => EventDraft): void;
  /** What follows ends in order. */
  unwatch(): void;
}
/** An interruption of an execution by a person. A type, since it is recorded. */
export type Interrupted = {
  readonly by: string;
  /** Empty if none was given. */
  readonly reason: string;
  /** Interrupts that its last calls started, which are handled when the state is entered again. */
  readonly missed?: readonly MatchedInterrupt[];
};
export type DetourEnd =
  /** `by` is the handler's result. */
  | { readonly kind: "returned"; readonly by: StageResult<Json> }
  /** The run continues elsewhere, and this execution ends as cancelled. */
  | { readonly kind: "left" };

export interface ExecutionEnd {
  readonly stateId: string;
  readonly result: StageResult<Json>;
  /** What its route decided. Undefined for a child, and for an execution that was cancelled. */
  readonly next: NextDecision | undefined;
  /** The move of an interrupt's handler that did not return to it. */
  readonly left: Transition | undefined;
  /** A person interrupted it. `now`: in this process, and not in an earlier one that recorded it. */
  readonly interrupted: (Interrupted & { readonly now: boolean }) | undefined;
  readonly denied: readonly Denied[];
}

/** A denied call, for the run's result. */
export type Denied = {
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: DenialCause;
};

export function isDenied(value: Json): value is Denied {
  const texts = ["executionId", "callId", "tool", "cause"].map((key) => textField(value, key));
  return !texts.includes(undefined) && numberField(value, "attempt") !== undefined;
}
