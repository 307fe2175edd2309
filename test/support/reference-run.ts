import type { Json, JsonObject } from "@sluice/core";
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
  type Limit,
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
  try {
    const { end, isOpen } = walk({ machine, path: "", first, runs, stages });
    return { runs, stages, end, ...(isOpen ? { isOpen } : {}) };
  } catch (thrown) {
    if (!(thrown instanceof TooLarge)) throw thrown;
    return { runs: new Map(), stages: [], end: { status: "completed", output: null }, isOpen: true };
  }
}

/** Branches that fork again come to more child runs than a test has time for. */
class TooLarge extends Error {}
const MOST_RUNS = 1_000;
const DEEPEST = 17;

/** An execution that works, or waits until its interrupt is handled. */
interface Execution {
  readonly place: Place;
  readonly id: string;
  readonly acts: readonly Act[];
  readonly outcome: Outcome;
  done: number;
  /** The interrupts that its last change asks for, with the file. */
  readonly queue: { readonly name: string; readonly path: string }[];
  /** The last of these. */
  interrupt?: string;
  /** The children of whose ends it reads what time decides. */
  readonly raced?: readonly string[];
}
interface Walk {
  readonly machine: Machine;
  readonly path: string;
  readonly first: Step;
  readonly runs: Map<string, RunTrace>;
  readonly stages: StageEnd[];
  /** Only the first execution, and the handlers of its interrupts. */
  readonly isSingle?: boolean;
}
interface Walked {
  readonly end: End;
  /** Time decides what happens, so that only some of the run can be foreseen. */
  readonly isOpen: boolean;
  /** Of a single execution. */
  readonly outcome?: Outcome;
}

function walk({ machine, path, first, runs, stages, isSingle = false }: Walk): Walked {
  const events: TraceEvent[] = [];
  const entered: Entered[] = [];
  const asked: Asked[] = [];
  const waiting: Execution[] = [];
  let current: Execution | undefined;
  let racing: readonly string[] = [];
  let isOpen = false;

  const close = ({ id }: Execution, outcome: Outcome): void => {
    events.push(finished(id, outcome));
    stages.push(stageEnd(id, outcome));
  };
  const finish = (end: End): Walked => {
    const { status } = end;
    const why = end.status === "completed" || isSingle ? {} : { code: end.code, ...messageOf(end) };
    events.push({ type: "run.finished", status, ...why });
    runs.set(path, { events, entered, asked, raced: false });
    return { end, isOpen };
  };
  const unwind = (): void => {
    for (const execution of waiting.splice(0).reverse())
      close(execution, { status: "cancelled", reason: "its interrupt did not return" });
  };
  /** A handler that goes elsewhere, or may not be entered, leaves a single execution no way on: it has failed. */
  const strand = (limit?: Limit): Walked => {
    const only = waiting.shift();
    unwind();
    if (only !== undefined) {
      events.push({ type: "attempt.finished", execution: only.id, outcome: "failed", code: "interrupted" });
      stages.push({ execution: only.id, status: "failed", code: "interrupted", raced: false });
    }
    if (limit !== undefined) events.push({ type: "limit.reached", limit });
    return finish({ status: "failed", code: "interrupted" });
  };

  let next = first;
  let before = first.after;
  /** The event that waits for its answer. */
  let sent: { readonly event: string; readonly data: JsonObject; readonly turn: number } | undefined;
  for (;;) {
    const { effect, after, decision, merged } = next;
    const unsure = racing.length > 0 ? racing : (current?.raced ?? []);
    asked.push(...next.asked.map((one) => (unsure.length > 0 ? { ...one, raced: unsure } : one)));
    const from = current;
    const isDecided = effect.kind !== "approve" && effect.kind !== "stay" && decision?.by !== "interrupt";
    if (decision !== undefined && from !== undefined && isDecided) {
      if (decision.rejected) events.push({ type: "route.rejected", execution: from.id, from: from.place.state });
      events.push(decided(from.id, from.place.state, decision));
      if (merged !== undefined) events.push({ type: "context.changed", execution: from.id, patch: merged });
    }
    if (isSingle && waiting.length > 0 && isDecided && decision !== undefined && effect.kind !== "return")
      return strand(effect.kind === "end" ? effect.limit : undefined);
    let happened: Happened | undefined;
    switch (effect.kind) {
      case "end": {
        if (decision?.by === "interrupt" && from !== undefined) {
          // Its handler may not be entered any more.
          const other = decision.choice.kind === "to" ? decision.choice.state : "";
          events.push({ type: "interrupt.started", execution: from.id, interrupt: from.interrupt ?? "", other });
          waiting.push(from);
          if (isSingle) return strand(effect.limit);
        }
        unwind();
        if (effect.limit !== undefined) events.push({ type: "limit.reached", limit: effect.limit });
        const isStray = machine.terminal !== undefined && effect.state !== machine.terminal;
        return finish(isStray && effect.end.status !== "failed" ? STRAYED : effect.end);
      }
      case "enter": {
        const place = after.at;
        if (place === undefined) throw new Error("an entered state is a place");
        if (decision?.by === "interrupt" && from !== undefined) {
          const interrupt = after.suspended.at(-1)?.interrupt ?? "";
          events.push({ type: "interrupt.started", execution: from.id, interrupt, other: effect.state });
          waiting.push(from);
        } else unwind();
        current = { ...executionOf(machine, place), raced: racing };
        entered.push({
          execution: current.id,
          sight: sightOf(after, place),
          ...(racing.length > 0 ? { raced: racing } : {}),
        });
        isOpen ||= racing.length > 0 && readsForks(machine);
        racing = [];
        events.push({ type: "attempt.started", execution: current.id, visit: place.visit });
        break;
      }
      case "return": {
        current = waiting.pop();
        const interrupt = before.suspended.at(-1)?.interrupt ?? "";
        if (current !== undefined && from !== undefined)
          events.push({ type: "interrupt.returned", execution: current.id, interrupt, other: from.id });
        break;
      }
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
        const joined = fanOut({ machine, path, runs, stages }, after, effect.children);
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
      const { outcome } = happened;
      close(current, outcome);
      if (isSingle && waiting.length === 0) return { ...finish(endOf(outcome)), outcome };
    }
    if (happened.kind === "event") sent = { event: happened.event, data: happened.data, turn: current.done };
    before = after;
    next = step(machine, after, happened);
    if (sent === undefined || next.effect.kind === "approve") continue;
    const { event, data, turn } = sent;
    sent = undefined;
    const isAccepted = next.effect.kind !== "stay";
    const type = isAccepted ? "transition.accepted" : "transition.rejected";
    events.push({ type, execution: current.id, turn, event });
    if (!isAccepted) continue;
    close(current, { status: "completed", output: { event, data } });
  }
}

/** A branch that ended where no branch ends. */
const STRAYED: End = { status: "failed", code: "failed" };

function executionOf(machine: Machine, place: Place): Execution {
  const { state, visit, input } = place;
  const node = nodeOf(machine, state);
  const outcome = outcomeOf(node, visit, input);
  return {
    place,
    id: `${state}#${visit}`,
    // A state that is skipped does nothing.
    acts: outcome.status === "skipped" ? [] : actsOf(node, visit, input),
    outcome,
    done: 0,
    queue: [],
  };
}

/** What an execution does next. What is being handled is not asked for again. */
function nextOf(machine: Machine, execution: Execution, { suspended }: RunState): Happened {
  for (;;) {
    const asked = execution.queue.shift();
    if (asked !== undefined) {
      execution.interrupt = asked.name;
      return { kind: "interrupt", ...asked };
    }
    const act = execution.acts[execution.done];
    if (act === undefined) return { kind: "result", outcome: execution.outcome };
    execution.done += 1;
    if (act.act === "event") return { kind: "event", event: act.event, data: act.data };
    const isHandled = (name: string): boolean => suspended.some(({ interrupt }) => interrupt === name);
    for (const { name, files } of machine.interrupts ?? [])
      if (!isHandled(name) && matches(files, act.path)) execution.queue.push({ name, path: act.path });
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
  { machine, path, runs, stages }: Omit<Walk, "first">,
  after: RunState,
  children: readonly Child[],
): Joined {
  const { pending } = after;
  if (pending === undefined) throw new Error("the children of no fan-out");
  const name = `fan-${after.fanOuts}`;
  if (path.split("/").length > DEEPEST) throw new TooLarge();
  const own = { runs: new Map<string, RunTrace>(), stages: [] as StageEnd[] };
  const each = children.map((child) =>
    childRun({ machine, path: `${path}/${name}/${child.key}`, ...own }, after, child),
  );
  const good = each.filter(({ ended: { status } }) => status === "completed" || status === "skipped").length;
  const { policy } = pending;
  // Those that the first to end cancels end at a point that time decides.
  const isRaced = policy === "cancel" ? good < each.length : policy === "any" && good > 0 && each.length > 1;
  for (const [run, trace] of own.runs) runs.set(run, isRaced ? { ...trace, raced: true } : trace);
  stages.push(...own.stages.map((stage) => (isRaced ? { ...stage, raced: true } : stage)));
  if (runs.size > MOST_RUNS) throw new TooLarge();
  const ended = each.map((child) => child.ended);
  const isGood = ({ status }: ChildEnded): boolean => status === "completed" || status === "skipped";
  const deciding = ended.filter((child) => isGood(child) === (policy === "any")).map(({ key }) => key);
  const racing = isRaced ? ended.map(({ key }) => key) : [];
  return {
    ended,
    racing,
    isOpen: each.some((run) => run.isOpen) || (policy === "any" && good > 1),
    events: [
      { type: "fanOut.started", fanOut: name, siblings: ended.map(({ key }) => key), join: pending.join },
      {
        type: "fanOut.joined",
        fanOut: name,
        outcomes: ended.map(({ key, status }) => ({
          name: key,
          status: status === "skipped" ? "completed" : status,
        })),
        ...(isRaced ? { raced: racing, deciding } : {}),
      },
    ],
  };
}

interface ChildRun {
  readonly ended: ChildEnded;
  readonly isOpen: boolean;
}
function childRun({ machine, path, runs, stages }: Omit<Walk, "first">, after: RunState, child: Child): ChildRun {
  const { key, input } = child;
  const { upstream, context } = after;
  const common = { path, runs, stages };
  if (child.kind !== "invoke") {
    const visit = after.visits.get(child.state) ?? 1;
    const at: Place = { state: child.state, visit, input, also: {} };
    const isBranch = child.kind === "branch";
    const visits = new Map([...(isBranch ? after.visits : []), [child.state, visit]]);
    const hops = isBranch ? after.hops : 0;
    const forks = after.forks + (isBranch ? 1 : 0);
    const state: RunState = { suspended: [], visits, hops, forks, upstream, context, fanOuts: 0, at };
    const first: Step = { effect: { kind: "enter", state: child.state, input }, after: state, asked: [] };
    const terminal = child.kind === "branch" ? { terminal: child.terminal } : {};
    const isSingle = child.kind === "sibling";
    const { end, isOpen, outcome } = walk({ ...common, machine: { ...machine, ...terminal }, first, isSingle });
    const ended = outcome === undefined ? childEnd(key, end) : { ...endedAs(outcome), ...outputOf(outcome), key };
    return { ended, isOpen };
  }
  const invoked = machine.pipelines?.[child.pipeline];
  if (invoked === undefined) throw new Error(`the machine invokes no ${child.pipeline}`);
  const own = isRecord(input) ? Object.entries(input) : [];
  const begun = beforeStart(invoked);
  const state = { ...begun, context: recordOf([...Object.entries(begun.context), ...own]) };
  const task = ["task", machine.input.task ?? ""] as const;
  const first = step({ ...invoked, input: recordOf([task, ...own]) }, state, { kind: "start" });
  // Its stages are those of another pipeline, and not among the results of this one.
  const { end, isOpen } = walk({ ...common, stages: [], machine: invoked, first });
  return { ended: childEnd(key, end), isOpen };
}

/** How the run of a single execution ends. */
function endOf(outcome: Outcome): End {
  const ended = endedAs(outcome);
  if (ended.status === "failed" || ended.status === "cancelled") return ended;
  return { status: "completed", output: outcome.status === "completed" ? outcome.output : null };
}

/** Whether any condition reads how children ended, which time may decide. */
function readsForks({ routes }: Machine): boolean {
  return JSON.stringify(routes).includes('["ctx","fork"');
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

function stageEnd(execution: string, outcome: Outcome): StageEnd {
  const { status } = outcome;
  const code = status === "failed" ? { code: outcome.code } : {};
  return { execution, status, ...code, ...outputOf(outcome), raced: false };
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
