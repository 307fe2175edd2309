import { field, type LiveChunk, type OpenRequest, type RunEnd, type SluiceEvent } from "@sluice/core";
import { addUsage, NO_USAGE, parseSiblingId, textField } from "@sluice/core/runtime";
import type { TranscriptEntry } from "@sluice/stages";
import { describeEvent, type EventLine } from "../words/describe-event.ts";
import { numberAt, textAt } from "../words/fields.ts";
import { isUnfinished } from "../words/symbols.ts";
import { ListBuilder } from "./append-only-list.ts";
import { DecisionReducer } from "./decision-reducer.ts";
import { ExecutionReducer, executionKey, noteOf, type ReducerContext } from "./execution-reducer.ts";
import { RunTree } from "./graph/run-tree.ts";
import type { KindEntry } from "./kind-reducer.ts";
import { OpenRequests } from "./open-requests.ts";
import { RunHead } from "./run-head.ts";
import type { ExecutionView, LogItem, RunView } from "./run-view.ts";
import { ownerOf } from "./time/rests.ts";
import { RunClock } from "./time/run-clock.ts";
import { TimeReducer } from "./time/time-reducer.ts";

/** One parsed record of a run or of a run below it. */
export interface ReadRecord {
  readonly runId: string;
  readonly seq: number;
  /** The process that wrote it, if that is known. */
  readonly incarnation?: string;
  readonly events: readonly SluiceEvent[];
  readonly entries: readonly TranscriptEntry[];
  /** What a state without a model did. */
  readonly own?: KindEntry;
  /** With the record that ends the root. */
  readonly end?: RunEnd;
}

/** An event in words, as the log of its run shows it. */
export interface RunLine extends EventLine {
  /** True for events that a forked run copied from its origin. */
  readonly isInherited: boolean;
}

/**
 * Reduces a run to its view, from records, or from events alone: then without texts and outputs. They come in
 * the order of their tree; what was reduced before is ignored. Costs as much as what changed, however long the run is.
 */
export interface RunReducer {
  /** Returns undefined for an event that was reduced before. */
  event(event: SluiceEvent): RunLine | undefined;
  record(record: ReadRecord): void;
  /** Streamed text; the view has it until its turn is recorded. */
  live(chunk: LiveChunk): void;
  /** The store's open requests, which lack those with an unread answer. Until the first call, the events decide. */
  requests(open: readonly OpenRequest[]): void;
  /** Whether a request is open by the events. */
  hasRequests(): boolean;
  /** Live text arrives from now on: the run executes in this process. */
  setStreams(): void;
  /** Whether a process executes the run, as far as its store knows. */
  setRunning(running: boolean): void;
  /** The same object until something changes; unchanged parts stay the same objects. */
  view(): RunView;
}

/** The reducer of a run, with the events that are known already. */
export function reduceRun(runId: string, events: Iterable<SluiceEvent> = []): RunReducer {
  const reducer = new Reducer(runId);
  for (const event of events) reducer.event(event);
  return reducer;
}

/** Maximum number of live chunks kept for executions whose first record was not read yet. */
const MOST_EARLY = 500;
/** Positions of events within one record. */
const RECORD_SIZE = 1_000_000;
/** Events outside executions that the log shows. */
const LOGGED: ReadonlySet<string> = new Set([
  "run.started",
  "run.forked",
  "run.resumed",
  "run.suspended",
  "fanOut.started",
  "fanOut.joined",
  "limit.near",
  "limit.reached",
]);

/** The executions that a record touched, and the items it adds to the run's own log. */
interface Changes {
  readonly touched: Set<ExecutionReducer>;
  readonly items: LogItem["item"][];
}

/** The run that a forked run was copied from; undefined for a run that is not a fork. */
function copiedFromIn({ data }: SluiceEvent): string | undefined {
  return textField(data.forkedFrom, "runId");
}

class Reducer implements RunReducer {
  readonly #head: RunHead;
  readonly #tree: RunTree;
  readonly #executions = new Map<string, ExecutionReducer>();
  readonly #byRun = new Map<string, ExecutionReducer[]>();
  readonly #views = new Map<string, ExecutionView>();
  readonly #dirty = new Set<ExecutionReducer>();
  readonly #log = new ListBuilder<LogItem>();
  readonly #requests = new OpenRequests();
  readonly #decisions = new DecisionReducer();
  readonly #clock = new RunClock();
  readonly #times = new TimeReducer();
  #early: LiveChunk[] = [];
  #isRunning = true;
  /** The run that the events were copied from, until the record of the fork. */
  #copiedFrom: string | undefined;
  #ordered: readonly ExecutionView[] = [];
  #usage = NO_USAGE;
  #calls = 0;
  #updatedAt = 0;
  #last = "";
  #view: RunView | undefined;

  constructor(runId: string) {
    this.#head = new RunHead(runId);
    this.#tree = new RunTree(runId);
  }

  event(event: SluiceEvent): RunLine | undefined {
    const [seq = 0, index = 0] = event.id
      .slice(event.runId.length + 1)
      .split("/")
      .map(Number);
    const position = seq * RECORD_SIZE + index;
    if (!this.#tree.take(event.runId, position, position + 1)) return undefined;
    const changes: Changes = { touched: new Set(), items: [] };
    const line = this.#apply(event, seq, undefined, changes);
    this.#settle(changes);
    return line;
  }

  record({ runId, seq, incarnation = "", events, entries, own, end }: ReadRecord): void {
    if (!this.#tree.take(runId, seq * RECORD_SIZE, (seq + 1) * RECORD_SIZE)) return;
    const changes: Changes = { touched: new Set(), items: [] };
    for (const entry of entries) {
      const execution = this.#executions.get(executionKey(runId, entry.executionId));
      if (execution === undefined) continue;
      execution.entry(entry);
      changes.touched.add(execution);
    }
    const began = this.#addOwn(runId, own, incarnation, changes);
    for (const event of events) this.#apply(event, seq, end, changes);
    // The record that enters a state begins its execution.
    if (!began) this.#addOwn(runId, own, incarnation, changes);
    for (const execution of changes.touched) execution.recordedBy(incarnation);
    this.#settle(changes);
  }

  #addOwn(runId: string, own: KindEntry | undefined, incarnation: string, { touched }: Changes): boolean {
    const execution = own === undefined ? undefined : this.#executions.get(executionKey(runId, own.executionId));
    if (own === undefined || execution === undefined) return false;
    execution.kindEntry(own, this.#tree.kindOf(execution), incarnation, this.#clock.shiftOf(runId));
    touched.add(execution);
    return true;
  }

  live(chunk: LiveChunk): void {
    if (this.#head.ended) return;
    const execution = this.#executions.get(executionKey(chunk.runId, textAt(chunk.chunk, "executionId")));
    if (execution === undefined) {
      if (this.#early.length < MOST_EARLY) this.#early.push(chunk);
    } else if (execution.stream(chunk)) {
      this.#dirty.add(execution);
      this.#view = undefined;
    }
  }

  requests(open: readonly OpenRequest[]): void {
    if (this.#head.ended || !this.#requests.stored(open)) return;
    this.#view = undefined;
    this.#touchAll((execution) => execution.hasRequests);
  }

  hasRequests(): boolean {
    return this.#requests.any;
  }

  setStreams(): void {
    this.#head.setStreams();
    this.#view = undefined;
  }

  setRunning(running: boolean): void {
    if (running === this.#isRunning) return;
    this.#isRunning = running;
    this.#view = undefined;
    this.#ownerChanged(!running);
  }

  view(): RunView {
    this.#view ??= this.#snapshot();
    return this.#view;
  }

  #apply(recorded: SluiceEvent, seq: number, end: RunEnd | undefined, { touched, items }: Changes): RunLine {
    const time = this.#clock.timeOf(recorded);
    const event = time === recorded.at ? recorded : { ...recorded, at: time };
    this.#updatedAt = Math.max(this.#updatedAt, event.at);
    const execution = event.executionId === undefined ? undefined : this.#executionOf(event, seq);
    const line = describeEvent(recorded, execution?.contextOf(recorded));
    if (!line.isDetail) this.#last = `${line.who} ${line.what} ${line.more}`.trimEnd();
    this.#decisions.event(recorded, line);
    if (event.type === "run.finished") this.#abandon(event);
    this.#times.event(event);
    const isRoot = event.runId === this.#head.runId;
    if (execution !== undefined) {
      execution.event(event, line);
      touched.add(execution);
    } else if (isRoot && LOGGED.has(event.type) && !line.isDetail) items.push(noteOf(line));
    // A copied fork has another origin.
    if (isRoot && event.type === "run.forked" && textAt(event.data, "from") === this.#copiedFrom)
      this.#copiedFrom = undefined;
    this.#applyToRun(event, line, seq);
    if (event.type === "run.finished") {
      this.#touchOwners(event.runId);
      this.#cancelUnfinished(event, touched);
      if (isRoot) items.push(this.#finish(event, end));
    }
    const isInherited = this.#copiedFrom !== undefined;
    if (isRoot && event.type === "run.started") this.#copiedFrom = copiedFromIn(event);
    return { ...line, isInherited };
  }

  #executionOf(event: SluiceEvent, seq: number): ExecutionReducer {
    const key = executionKey(event.runId, event.executionId ?? "");
    const known = this.#executions.get(key);
    if (known !== undefined) return known;
    const execution = new ExecutionReducer(event);
    this.#executions.set(key, execution);
    const ofRun = this.#byRun.get(event.runId) ?? [];
    ofRun.push(execution);
    this.#byRun.set(event.runId, ofRun);
    this.#tree.began(key, execution, seq);
    const early = this.#early;
    this.#early = [];
    for (const chunk of early) this.live(chunk);
    return execution;
  }

  #settle({ touched, items }: Changes): void {
    this.#view = undefined;
    for (const execution of touched) {
      this.#dirty.add(execution);
      const sibling =
        this.#tree.forkOf(execution.runId) === undefined ? {} : { sibling: execution.item ?? execution.stateId };
      for (const item of execution.afterRecord()) this.#log.push({ key: execution.key, ...sibling, item });
    }
    for (const item of items) this.#log.push({ item });
    this.#log.settle(() => true);
  }

  /** The effect of an event outside its own execution. */
  #applyToRun(event: SluiceEvent, line: EventLine, seq: number): void {
    const { type, data, runId } = event;
    const isRoot = runId === this.#head.runId;
    switch (type) {
      case "run.started":
        this.#tree.started(event);
        this.#touchOwners(runId);
        if (isRoot) this.#head.start(event);
        break;
      case "run.forked":
        if (!isRoot) break;
        this.#tree.continued(event);
        this.#head.continued(event);
        break;
      case "sleep.started":
      case "sleep.ended":
      case "execution.suspended":
      case "execution.continued":
        this.#touchOwners(runId);
        break;
      case "interrupt.started":
        this.#tree.interrupted(event);
        break;
      case "interrupt.returned":
        this.#tree.resumed(event);
        break;
      case "stage.exit":
        if (textAt(data, "phase") === "left") this.#tree.resumed(event);
        break;
      case "run.suspended":
      case "run.resumed":
        if (!isRoot) break;
        this.#head.suspend(type === "run.suspended", field(data, "wakeAt") !== undefined);
        this.#ownerChanged(true);
        // No execution worked until the resume, also none that has ended since.
        this.#touchAll(({ endedAt = 0 }) => endedAt > event.at);
        if (type === "run.resumed") {
          this.#isRunning = true;
          this.#tree.continued(event);
          this.#head.continued(event);
        }
        break;
      case "fanOut.started":
        this.#tree.forked(event, seq);
        this.#touchAll((execution) => this.#tree.forkOf(execution.runId) !== undefined);
        break;
      case "fanOut.joined":
        this.#tree.joined(event);
        break;
      case "route.decided":
      case "route.rejected":
      case "transition.rejected":
        this.#tree.routed(event, line);
        break;
      case "turn.finished":
        this.#calls += numberAt(data, "calls");
        break;
      case "call.decided":
        this.#head.decided(event);
        break;
      case "grant.requested":
      case "request.opened":
        this.#requests.opened(event);
        break;
      case "grant.answered":
      case "grant.expired":
      case "request.answered":
      case "request.expired": {
        const requestId = textAt(data, "requestId");
        this.#requests.closed((request) => request.runId === runId && request.requestId === requestId);
        break;
      }
      case "limit.near":
      case "limit.reached":
        this.#head.limit(event);
        break;
      default:
        break;
    }
  }

  /** A run that is cancelled from outside records no end of its executions and requests. */
  #cancelUnfinished({ runId, data, at }: SluiceEvent, touched: Set<ExecutionReducer>): void {
    for (const execution of this.#byRun.get(runId) ?? []) {
      if (execution.ended) continue;
      execution.cancel(at, textAt(data, "reason"));
      touched.add(execution);
    }
    this.#requests.closed((request) => request.runId === runId);
  }

  /** What the run of an event leaves unfinished had no process until then. */
  #abandon(event: SluiceEvent): void {
    const unfinished = (this.#byRun.get(event.runId) ?? []).filter(({ ended }) => !ended);
    const { status, unattended } = event.data;
    if (status !== "cancelled" || (unfinished.length === 0 && unattended !== true)) return;
    const keys = unfinished.map(({ key }) => key);
    this.#times.abandoned(keys, event);
    this.#touchAll(({ ended }) => !ended);
  }

  #finish(event: SluiceEvent, end: RunEnd | undefined): LogItem["item"] {
    const item = this.#head.finish(event, end);
    this.#last = `run ${item.status}`;
    this.#requests.closed(() => true);
    this.#early = [];
    this.#ownerChanged(true);
    return item;
  }

  #ownerChanged(dropLive: boolean): void {
    this.#touchAll((execution) => (dropLive && execution.dropLive()) || !execution.ended);
  }

  /** The executions that started a run, or a run above it, rest with what they wait for. */
  #touchOwners(runId: string): void {
    for (let at: string | undefined = runId; at !== undefined; at = parseSiblingId(at)?.parentId) {
      const execution = this.#executions.get(ownerOf(at) ?? "");
      if (execution !== undefined) this.#dirty.add(execution);
    }
  }

  #touchAll(which: (execution: ExecutionReducer) => boolean): void {
    for (const execution of this.#executions.values()) if (which(execution)) this.#dirty.add(execution);
  }

  #snapshot(): RunView {
    const isKilled = !this.#head.ended && !this.#head.suspended && !this.#isRunning;
    const suspended = isKilled || this.#head.suspended;
    if (this.#dirty.size > 0) this.#refresh(suspended, isKilled);
    const head = this.#head.view();
    const requests = this.#requests.view();
    const wakeAt = this.#wakeAt();
    const isAsleep = wakeAt !== undefined && requests.length === 0 && !this.#ordered.some((one) => this.#works(one));
    const shiftedMs = this.#clock.shiftOf(this.#head.runId);
    const own = head.status === "running" && requests.length > 0 ? "waiting" : head.status;
    return {
      ...head,
      status: isAsleep ? "sleeping" : suspended ? "suspended" : own,
      ...(wakeAt === undefined ? {} : { wakeAt }),
      ...(isAsleep && suspended ? { unattended: true } : {}),
      ...this.#tree.view(),
      executions: this.#ordered,
      requests,
      ...this.#decisions.view(),
      usage: this.#usage,
      calls: this.#calls,
      spans: this.#times.view(isKilled),
      ...(shiftedMs === 0 ? {} : { shiftedMs }),
      updatedAt: this.#updatedAt,
      last: this.#last,
      log: this.#log.view(),
    };
  }

  /** When the first of its states wakes. */
  #wakeAt(): number | undefined {
    const times = this.#ordered.flatMap(({ nextWakeAt }) => nextWakeAt ?? []);
    return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
  }

  /** Whether an execution neither has ended nor rests, nor waits for runs below its own. */
  #works({ runId, status }: ExecutionView): boolean {
    if (!isUnfinished(status) || status === "sleeping" || status === "interrupted") return false;
    return !this.#ordered.some((other) => other.runId.startsWith(`${runId}/`) && isUnfinished(other.status));
  }

  #refresh(suspended: boolean, isKilled: boolean): void {
    let usageChanged = false;
    for (const execution of this.#dirty) {
      const { runId, key } = execution;
      const context: ReducerContext = {
        suspended,
        stays: this.#head.suspended && !this.#head.wakes,
        facts: this.#tree.factsOf(execution),
        restOf: (from, to) => this.#times.restOf(key, from, to, isKilled),
        isOpen: (requestId) => this.#requests.isOpen({ runId, requestId }),
      };
      const view = execution.view(context);
      usageChanged ||= this.#views.get(key)?.usage !== view.usage;
      this.#views.set(key, view);
    }
    this.#dirty.clear();
    this.#ordered = this.#tree.order().flatMap((key) => this.#views.get(key) ?? []);
    if (usageChanged) this.#usage = this.#ordered.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE);
  }
}
