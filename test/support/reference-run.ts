import type { Json } from "@sluice/core";
import {
  type Act,
  type Asked,
  actsOf,
  type End,
  type Ended,
  type Entered,
  type Expectation,
  isRecord,
  type Machine,
  nodeOf,
  type Outcome,
  outcomeOf,
  type RouteDecided,
  type RunTrace,
  recordOf,
  type StageEnd,
  type TraceEvent,
} from "./reference-machine.ts";
import {
  beforeStart,
  type Child,
  type ChildEnded,
  type Decision,
  type Happened,
  type Place,
  type RunState,
  type Step,
  sightOf,
  step,
} from "./reference-step.ts";

// What a whole run of a machine does: its states do what their nodes say, and one transition follows another.

/** What a run of the machine does from its start to its end. */
export function interpret(machine: Machine): Expectation {
  const runs = new Map<string, RunTrace>();
  const stages: StageEnd[] = [];
  const first = step(machine, beforeStart(machine), { kind: "start" });
  const { end, isOpen } = walk({ machine, path: "", first, raced: false, runs, stages });
  return { runs, stages, end, ...(isOpen ? { isOpen } : {}) };
}

/** An execution that works, or waits until its interrupt is handled. */
interface Execution {
  readonly place: Place;
  readonly id: string;
  readonly acts: readonly Act[];
  readonly outcome: Outcome;
  done: number;
  /** The interrupts that its last change asks for, with the file. */
  readonly queue: { readonly name: string; readonly path: string }[];
}
interface Walk {
  readonly machine: Machine;
  readonly path: string;
  readonly first: Step;
  readonly raced: boolean;
  readonly runs: Map<string, RunTrace>;
  readonly stages: StageEnd[];
  /** The state whose entry completes a branch. */
  readonly until?: string;
}
interface Walked {
  readonly end: End;
  /** Time decides what happens, so that only some of the run can be foreseen. */
  readonly isOpen: boolean;
}

function walk({ machine, path, first, raced, runs, stages, until }: Walk): Walked {
  const events: TraceEvent[] = [];
  const entered: Entered[] = [];
  const asked: Asked[] = [];
  const waiting: Execution[] = [];
  let current: Execution | undefined;
  let racing: readonly string[] = [];
  let isOpen = false;
  /** The last output that an execution left with. */
  let output: Json = null;

  const close = ({ id }: Execution, outcome: Outcome): void => {
    events.push(finished(id, outcome));
    stages.push(stageEnd(id, outcome, raced));
  };
  const finish = (end: End): Walked => {
    const { status } = end;
    const why = end.status === "completed" || path !== "" ? {} : { code: end.code, ...messageOf(end) };
    events.push({ type: "run.finished", status, ...why });
    runs.set(path, { events, entered, asked, raced });
    return { end, isOpen };
  };
  const unwind = (): void => {
    for (const execution of waiting.splice(0).reverse())
      close(execution, { status: "cancelled", reason: "its interrupt did not return" });
  };

  let next = first;
  for (;;) {
    const { effect, after, decision, merged } = next;
    asked.push(...next.asked.map((one) => (racing.length > 0 ? { ...one, raced: racing } : one)));
    const from = current;
    if (decision !== undefined && from !== undefined && effect.kind !== "approve" && effect.kind !== "stay") {
      if (decision.rejected) events.push({ type: "route.rejected", execution: from.id, from: from.place.state });
      events.push(decided(from.id, from.place.state, decision));
      if (merged !== undefined) events.push({ type: "context.changed", execution: from.id, patch: merged });
    }
    let happened: Happened | undefined;
    switch (effect.kind) {
      case "end": {
        unwind();
        if (effect.limit !== undefined) events.push({ type: "limit.reached", limit: effect.limit });
        return finish(until !== undefined && effect.end.status === "completed" ? STRAYED : effect.end);
      }
      case "enter": {
        racing = [];
        const place = after.at;
        if (place === undefined) throw new Error("an entered state is a place");
        if (decision?.by === "interrupt" && from !== undefined) waiting.push(from);
        else unwind();
        if (effect.state === until && from !== undefined) return finish({ status: "completed", output });
        current = executionOf(machine, place);
        entered.push({ execution: current.id, sight: sightOf(after, place) });
        events.push({ type: "attempt.started", execution: current.id, visit: place.visit });
        break;
      }
      case "return":
        current = waiting.pop();
        break;
      case "approve": {
        const { kind, rows } = { rows: [], ...machine.routes };
        const says = rows[effect.row]?.approval?.says ?? [];
        const visit = after.at?.visit ?? 1;
        if (kind !== "table" || says.length === 0) throw new Error("only rows ask a person");
        happened = { kind: "answer", approved: says[(visit - 1) % says.length] === "yes" };
        break;
      }
      case "fanOut": {
        unwind();
        const joined = fanOut({ machine, path, runs, stages, raced }, after, effect.children);
        events.push(...joined.events);
        racing = joined.racing;
        isOpen ||= joined.isOpen;
        happened = { kind: "children", ended: joined.ended };
        break;
      }
      case "stay":
        break;
    }
    if (current === undefined) throw new Error("nothing works");
    happened ??= nextOf(machine, current, after);
    if (happened.kind === "result") {
      close(current, happened.outcome);
      output = happened.outcome.status === "completed" ? happened.outcome.output : null;
    }
    next = step(machine, after, happened);
    if (happened.kind === "event" && next.effect.kind !== "stay" && next.effect.kind !== "approve") {
      output = { event: happened.event, data: happened.data };
      close(current, { status: "completed", output });
    }
  }
}

/** A branch that ended where no branch ends. */
const STRAYED: End = { status: "failed", code: "failed" };

function executionOf(machine: Machine, place: Place): Execution {
  const { state, visit, input } = place;
  const node = nodeOf(machine, state);
  return {
    place,
    id: `${state}#${visit}`,
    acts: actsOf(node, visit, input),
    outcome: outcomeOf(node, visit, input),
    done: 0,
    queue: [],
  };
}

/** What an execution does next. A handler's changes do not ask for its own interrupt. */
function nextOf(machine: Machine, execution: Execution, { suspended }: RunState): Happened {
  for (;;) {
    const asked = execution.queue.shift();
    if (asked !== undefined) return { kind: "interrupt", ...asked };
    const act = execution.acts[execution.done];
    if (act === undefined) return { kind: "result", outcome: execution.outcome };
    execution.done += 1;
    if (act.act === "event") return { kind: "event", event: act.event, data: act.data };
    const own = suspended.at(-1)?.interrupt;
    for (const { name, files } of machine.interrupts ?? [])
      if (name !== own && matches(files, act.path)) execution.queue.push({ name, path: act.path });
  }
}

/** The three shapes of globs that these machines have: a path, everything in a folder, everything with an ending. */
function matches(glob: string, path: string): boolean {
  if (glob.endsWith("/**")) return path.startsWith(glob.slice(0, -2));
  if (glob.startsWith("**/*")) return path.endsWith(glob.slice(4));
  return glob === path;
}

interface Joined {
  readonly ended: readonly ChildEnded[];
  readonly events: readonly TraceEvent[];
  readonly racing: readonly string[];
  readonly isOpen: boolean;
}
function fanOut(
  { machine, path, runs, stages, raced }: Omit<Walk, "first">,
  after: RunState,
  children: readonly Child[],
): Joined {
  const { pending } = after;
  if (pending === undefined) throw new Error("the children of no fan-out");
  const name = `fan-${after.fanOuts}`;
  // How the others end is only known when it is known whether one of them cancels them.
  const dry = children.map((child) =>
    childRun({ machine, path: "", runs: new Map(), stages: [], raced }, after, child),
  );
  const isGood = ({ ended: { status } }: ChildRun): boolean => status === "completed" || status === "skipped";
  const good = dry.filter(isGood).length;
  const { policy } = pending;
  const isRaced = policy === "cancel" ? good < dry.length : policy === "any" && good > 0 && dry.length > 1;
  const ended = children.map(
    (child) =>
      childRun({ machine, path: `${path}/${name}/${child.key}`, runs, stages, raced: raced || isRaced }, after, child)
        .ended,
  );
  const racing = isRaced ? ended.map(({ key }) => key) : [];
  return {
    ended,
    racing,
    isOpen: dry.some((run) => run.isOpen) || (policy === "any" && good > 1),
    events: [
      { type: "fanOut.started", fanOut: name, siblings: ended.map(({ key }) => key), join: pending.join },
      {
        type: "fanOut.joined",
        fanOut: name,
        outcomes: ended.map(({ key, status }) => ({
          name: key,
          status: status === "skipped" ? "completed" : status,
        })),
        ...(isRaced ? { raced: racing } : {}),
      },
    ],
  };
}

interface ChildRun {
  readonly ended: ChildEnded;
  readonly isOpen: boolean;
}
function childRun(
  { machine, path, runs, stages, raced }: Omit<Walk, "first">,
  after: RunState,
  child: Child,
): ChildRun {
  const { key, input } = child;
  const { upstream, context } = after;
  if (child.kind === "sibling") {
    const place: Place = { state: child.state, visit: after.visits.get(child.state) ?? 1, input, also: {} };
    const { id, outcome } = executionOf(machine, place);
    const status = outcome.status === "skipped" ? "completed" : outcome.status;
    stages.push(stageEnd(id, outcome, raced));
    runs.set(path, {
      events: [
        { type: "attempt.started", execution: id, visit: place.visit },
        finished(id, outcome),
        { type: "run.finished", status },
      ],
      entered: [{ execution: id, sight: sightOf(after, place) }],
      asked: [],
      raced,
    });
    return { ended: { ...endedAs(outcome), ...outputOf(outcome), key }, isOpen: false };
  }
  const common = { path, raced, runs, stages };
  if (child.kind === "branch") {
    const visit = after.visits.get(child.state) ?? 1;
    const at: Place = { state: child.state, visit, input, also: {} };
    const visits = new Map([[child.state, visit]]);
    const state: RunState = { suspended: [], visits, hops: 0, upstream, context, fanOuts: 0, at };
    const first: Step = { effect: { kind: "enter", state: child.state, input }, after: state, asked: [] };
    const { end, isOpen } = walk({ ...common, machine, first, until: child.terminal });
    return { ended: childEnd(key, end), isOpen };
  }
  const invoked = machine.pipelines?.[child.pipeline];
  if (invoked === undefined) throw new Error(`the machine invokes no ${child.pipeline}`);
  const own = isRecord(input) ? Object.entries(input) : [];
  const begun = beforeStart(invoked);
  const state = { ...begun, context: recordOf([...Object.entries(begun.context), ...own]) };
  const first = step({ ...invoked, input: isRecord(input) ? input : {} }, state, { kind: "start" });
  const { end, isOpen } = walk({ ...common, machine: invoked, first });
  return { ended: childEnd(key, end), isOpen };
}

function childEnd(key: string, end: End): ChildEnded {
  if (end.status === "completed") return { key, status: "completed", output: end.output };
  return { key, status: end.status, code: end.code, message: end.message ?? "" };
}
function messageOf(end: End): { readonly message?: string } {
  return end.status === "completed" || end.message === undefined ? {} : { message: end.message };
}

function finished(execution: string, outcome: Outcome): TraceEvent {
  const code = outcome.status === "failed" ? { code: outcome.code } : {};
  return { type: "attempt.finished", execution, outcome: outcome.status, ...code };
}

function stageEnd(execution: string, outcome: Outcome, raced: boolean): StageEnd {
  const { status } = outcome;
  const code = status === "failed" ? { code: outcome.code } : {};
  return { execution, status, ...code, ...outputOf(outcome), raced };
}

function outputOf(outcome: Outcome): { readonly output?: Json } {
  return outcome.status === "completed" ? { output: outcome.output } : {};
}

function endedAs(outcome: Outcome): Ended {
  switch (outcome.status) {
    case "completed":
    case "skipped":
      return { status: outcome.status };
    case "failed":
      return { status: "failed", code: outcome.code, message: outcome.message };
    case "paused":
      return { status: "failed", code: "failed", message: "" };
    case "cancelled":
      return { status: "cancelled", code: "cancelled", message: outcome.reason };
  }
}

function decided(execution: string, from: string, { choice, by, row, refused, code }: Decision): RouteDecided {
  const base = {
    type: "route.decided",
    execution,
    from,
    by,
    ...(row === undefined ? {} : { row }),
    ...(refused === undefined || refused.length === 0 ? {} : { refused }),
  } as const;
  switch (choice.kind) {
    case "to":
      return { ...base, choice: "to", to: choice.state };
    case "fanOut": {
      const states = choice.children.map((child) => (child.kind === "invoke" ? child.pipeline : child.state));
      return { ...base, choice: "fanOut", to: choice.list === undefined ? states : [choice.list], join: choice.join };
    }
    case "fail":
    case "cancel":
      return { ...base, choice: choice.kind, ...(code === undefined ? { reason: choice.reason } : {}) };
    default:
      return { ...base, choice: choice.kind };
  }
}
