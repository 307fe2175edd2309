import { deepFreeze, field, type Json, type JsonObject } from "../base/json.ts";
import type {
  Arrival,
  ListItem,
  ProjectFacts,
  SiblingOutcome,
  StageContext,
  StageResult,
} from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { type OutputChange, Outputs } from "./outputs.ts";
import type { FanOutChoice } from "./resolve-choice.ts";

/** What decisions read of a run. Nothing in it is copied, and only `apply` changes it. */
export interface MachineView {
  readonly run: RunFacts;
  /** The shared object that only routes change. Frozen. */
  readonly context: JsonObject;
  readonly outputs: Outputs;
  /** Routes taken. */
  readonly hops: number;
  /** Fan-outs started. */
  readonly fanOuts: number;
  /** By state; a state that was never entered has no entry. */
  readonly counts: ReadonlyMap<string, StateCount>;
  /** The state that was entered last; undefined before the start. */
  readonly at: Entered | undefined;
  /** How the fan-out ended that this state joins; undefined in every other state. */
  readonly joined: Joined | undefined;
  /** The fan-out whose children run now. */
  readonly pending: PendingFanOut | undefined;
  /** The executions that wait for the handlers of interrupts, the innermost last. */
  readonly suspended: readonly Suspended[];
  /** Of a branch's run: the state that completes it. */
  readonly terminal: string | undefined;
  /** The forks around this run, each in a branch of the next. */
  readonly forks: number;
  /** Whether the orchestrator's fallback was taken. */
  readonly fellBack: boolean;
}
export interface MachineState extends MachineView {
  context: JsonObject;
  outputs: Outputs;
  hops: number;
  fanOuts: number;
  readonly counts: Map<string, StateCount>;
  at: Entered | undefined;
  joined: Joined | undefined;
  pending: PendingFanOut | undefined;
  suspended: readonly Suspended[];
  fellBack: boolean;
}

/** An execution that waits for the handler of an interrupt. */
export interface Suspended {
  readonly at: Entered;
  readonly joined: Joined | undefined;
  /** The interrupt's name. */
  readonly interrupt: string;
}

/** What is the same during a whole run. */
export interface RunFacts {
  readonly id: string;
  /** The absolute path of the run's folder. */
  readonly workspace: string;
  readonly input: Json;
  /** What it read of its project's files; absent if nothing reads it. */
  readonly project?: ProjectFacts | undefined;
}
export interface StateCount {
  readonly visits: number;
  /** Of all executions that have ended. */
  readonly turns: number;
}
export interface Entered {
  readonly state: string;
  readonly input: Json;
  /** Counted from 1. */
  readonly visit: number;
  /** The event that led here, if one did. */
  readonly arrivedBy?: Arrival;
  /** A row led here from a pause of the same state: the input is what that left. */
  readonly afterPause?: true;
  /** Takes the place of the state's own prompt. */
  readonly prompt?: string;
  /** After an interruption by a person: what the execution before this one left. */
  readonly feedback?: string;
  /** After an interruption by a person: interrupts that the execution before this one started, and that no handler has handled. */
  readonly missed?: readonly { readonly interrupt: string; readonly files: readonly string[] }[];
}
/** `ctx.fork` or `ctx.items` of a join. */
export interface Joined {
  readonly fork?: Readonly<Record<string, SiblingOutcome>>;
  readonly items?: Readonly<Record<string, readonly ListItem<Json>[]>>;
}
export interface PendingFanOut {
  /** `fan-<n>`, counted over the run. */
  readonly id: string;
  readonly choice: FanOutChoice;
  /** The result that led to it. */
  readonly after: StageResult<Json>;
}

/** What a transition changes, as data. */
export interface Patch {
  /** In this order. */
  readonly outputs?: readonly OutputChange[];
  /** Turns to add. */
  readonly turns?: readonly { readonly state: string; readonly turns: number }[];
  /** Routes to count. */
  readonly hops?: number;
  /** Merged into the shared object, key by key. */
  readonly context?: JsonObject;
  /** Enters a state, which is one visit. */
  readonly enter?: Pick<Entered, "state" | "input" | "arrivedBy" | "afterPause" | "prompt" | "feedback" | "missed"> & {
    readonly joined?: Joined;
  };
  /** Starts a fan-out, which is one visit of each of its states. */
  readonly fanOut?: PendingFanOut;
  /** Before `enter`: the execution of the state that was entered last waits. */
  readonly suspend?: { readonly interrupt: string };
  /** The execution that was suspended last continues. */
  readonly resume?: true;
  /** The suspended executions end as cancelled, the innermost first. */
  readonly unwind?: true;
  /** The orchestrator's fallback was taken. */
  readonly fellBack?: true;
}

/** The state before a run's start. `id` and `workspace` are for user code, which reads them in its context. */
export function initialState(
  spec: PipelineSpec,
  run: Pick<RunFacts, "input"> & Partial<Omit<RunFacts, "input">>,
): MachineState {
  const { id = "", workspace = "", input, project } = run;
  return {
    run: {
      id,
      workspace,
      input: deepFreeze(input),
      ...(project === undefined ? {} : { project: deepFreeze(project) }),
    },
    context: deepFreeze(spec.context),
    outputs: Outputs.of({}),
    hops: 0,
    fanOuts: 0,
    counts: new Map(),
    at: undefined,
    joined: undefined,
    pending: undefined,
    suspended: [],
    terminal: undefined,
    forks: 0,
    fellBack: false,
  };
}

/** What a child's run reads of its parent. */
export type ParentView = Pick<MachineView, "run" | "context" | "outputs" | "hops" | "counts" | "forks">;

/** The state of a child's run, which reads what its parent had when it fanned out. `turns` are those of earlier visits. */
export function childState(
  parent: ParentView,
  child: {
    readonly id: string;
    readonly entered: Entered;
    readonly turns: number;
    /** Of a branch. */
    readonly terminal?: string;
  },
): MachineState {
  const { id, entered, turns, terminal } = child;
  // A branch continues its parent's counts: otherwise forks that lead to each other would never reach a cap.
  const isBranch = terminal !== undefined;
  return {
    run: { ...parent.run, id },
    context: parent.context,
    outputs: parent.outputs,
    hops: isBranch ? parent.hops : 0,
    fanOuts: 0,
    counts: new Map([...(isBranch ? parent.counts : []), [entered.state, { visits: entered.visit, turns }]]),
    at: { ...entered, input: deepFreeze(entered.input) },
    joined: undefined,
    pending: undefined,
    suspended: [],
    terminal,
    forks: parent.forks + (isBranch ? 1 : 0),
    fellBack: false,
  };
}

/** Changes a state as a transition says; the only writer. Judges nothing. */
export function apply(state: MachineState, patch: Patch): void {
  const { outputs = [], turns = [], hops = 0, context, enter, fanOut, suspend, resume, unwind } = patch;
  for (const { output } of outputs) deepFreeze(output);
  state.outputs = state.outputs.with(outputs);
  for (const added of turns) count(state, added.state, 0, added.turns);
  state.hops += hops;
  if (context !== undefined) state.context = deepFreeze({ ...state.context, ...context });
  if (unwind === true) state.suspended = [];
  if (patch.fellBack === true) state.fellBack = true;
  if (suspend !== undefined) {
    const { joined } = state;
    state.suspended = [...state.suspended, { at: enteredOf(state), joined, interrupt: suspend.interrupt }];
  }
  if (resume === true) {
    const last = state.suspended.at(-1);
    if (last === undefined) throw new Error("no execution is suspended");
    state.suspended = state.suspended.slice(0, -1);
    state.at = last.at;
    state.joined = last.joined;
    state.pending = undefined;
  }
  if (enter !== undefined) {
    const { visits: visit } = count(state, enter.state, 1, 0);
    const { arrivedBy, afterPause, prompt, feedback, missed } = enter;
    const at = { state: enter.state, input: deepFreeze(enter.input), visit };
    state.at = arrivedBy === undefined ? at : { ...at, arrivedBy: deepFreeze(arrivedBy) };
    if (afterPause !== undefined) state.at = { ...state.at, afterPause };
    if (prompt !== undefined) state.at = { ...state.at, prompt };
    if (feedback !== undefined) state.at = { ...state.at, feedback, ...(missed === undefined ? {} : { missed }) };
    state.joined = deepFreeze(enter.joined);
    state.pending = undefined;
  }
  if (fanOut !== undefined) {
    for (const visited of statesToVisit(fanOut.choice)) count(state, visited, 1, 0);
    state.fanOuts += 1;
    state.pending = fanOut;
  }
}

function count(state: MachineState, id: string, visits: number, turns: number): StateCount {
  const known = countOf(state, id);
  const counted = { visits: known.visits + visits, turns: known.turns + turns };
  state.counts.set(id, counted);
  return counted;
}

export function countOf({ counts }: Pick<MachineView, "counts">, state: string): StateCount {
  return counts.get(state) ?? { visits: 0, turns: 0 };
}

/** `plan#1`: an entry into a state, counted from 1. */
export function executionIdOf(state: string, visit: number): string {
  return `${state}#${visit}`;
}

/** The state and the visit of an execution's id. Any other text, which a journal may hold, counts as a state. */
export function parseExecutionId(executionId: string): { readonly state: string; readonly visit: number } {
  const [, state = executionId, visit = "1"] = /^(.*)#(\d{1,9})$/s.exec(executionId) ?? [];
  return { state, visit: Number(visit) };
}

/** Visits of one state, unless `limits.maxVisits` says otherwise. */
export const MAX_VISITS = 10;

/** Routes of one run, unless `limits.maxHops` says otherwise. */
export function maxHopsOf({ limits, states }: PipelineSpec): number {
  return limits.maxHops ?? 10 * states.size;
}

/** The state that was entered last. Throws before the start. */
export function enteredOf({ at }: Pick<MachineView, "at">): Entered {
  if (at === undefined) throw new Error('the run has not started: give the machine { kind: "start" } first');
  return at;
}

/** The states that a fan-out visits, each once, however many of its children, such as the items of a list, start there. */
export function statesToVisit({ siblings }: FanOutChoice): readonly string[] {
  return [...new Set(siblings.flatMap((sibling) => (sibling.kind === "invoke" ? [] : [sibling.state])))];
}

/** What an attempt adds to what user code reads. */
export interface AttemptFacts {
  readonly setup?: Json;
  /** From 1, which is the default. */
  readonly attempt?: number;
  readonly feedback?: string | undefined;
}

/**
 * The context of the state that was entered last, as prompts, hooks and routes read it. Frozen; it shows this moment, whatever
 * happens later.
 */
export function contextOf(view: MachineView, facts: AttemptFacts = {}, joined = view.joined): StageContext {
  const { setup = null, attempt = 1, feedback } = facts;
  const { run, outputs, context, at } = view;
  const task = field(run.input, "task");
  const ctx = {
    runId: run.id,
    workspace: run.workspace,
    task: typeof task === "string" ? task : "",
    run: Object.freeze({ input: run.input }),
    input: at?.input ?? null,
    context,
    setup: deepFreeze(setup),
    attempt,
    visit: at?.visit ?? 0,
  };
  addUpstream(ctx, outputs);
  // A spread of `ctx` would read its outputs.
  if (at?.arrivedBy !== undefined) Object.assign(ctx, { arrivedBy: at.arrivedBy });
  if (run.project !== undefined) Object.assign(ctx, { project: run.project });
  return Object.freeze(Object.assign(ctx, feedback === undefined ? {} : { feedback }, deepFreeze(joined)));
}

/** Where a context keeps the outputs that its `upstream` reads. */
const OUTPUTS = Symbol("outputs");

/** One getter for all contexts: V8 keeps an object with a getter of its own as a hash table, in three times the memory. */
const UPSTREAM: PropertyDescriptor & ThisType<{ readonly [OUTPUTS]: Outputs }> = {
  enumerable: true,
  get() {
    return this[OUTPUTS].object;
  },
};

function addUpstream<T extends object>(ctx: T, outputs: Outputs): asserts ctx is T & Pick<StageContext, "upstream"> {
  Object.defineProperty(ctx, OUTPUTS, { value: outputs });
  Object.defineProperty(ctx, "upstream", UPSTREAM);
}
