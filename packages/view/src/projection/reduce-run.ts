import {
  addUsage,
  field,
  type LiveChunk,
  type OpenRequest,
  type RunEnd,
  type SluiceEvent,
  type Usage,
} from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";
import { createEventDescriber } from "../words/event-lines.ts";
import { textAt } from "../words/fields.ts";
import { ListBuilder } from "./append-only-list.ts";
import { lineOf, runBoundaryOf } from "./boundaries.ts";
import { ExecutionReducer, executionKey, type ReducerContext } from "./execution-reducer.ts";
import { OpenRequests } from "./open-requests.ts";
import { RunHead } from "./run-head.ts";
import { RunTree } from "./run-tree.ts";
import type { ExecutionView, LogItem, RunEndItem, RunView } from "./run-view.ts";

/** One record of a run or of a run below it, read. */
export interface ReadRecord {
  readonly runId: string;
  readonly seq: number;
  readonly events: readonly SluiceEvent[];
  readonly entries: readonly TranscriptEntry[];
  /** With the record that ends the root. */
  readonly end?: RunEnd;
}

/**
 * Puts a run's view together from what comes of it. Records of one run come in their order, those of different runs in any;
 * one that was taken before is passed over. Costs as much as what changed, however long the run is.
 */
export interface RunReducer {
  record(record: ReadRecord): void;
  /** Streamed text: it is shown until its turn is recorded. */
  live(chunk: LiveChunk): void;
  /** What the store says is open now: without what was answered and is not taken up yet. Until it is told, the records say. */
  requests(open: readonly OpenRequest[]): void;
  /** Whether the records know of something that somebody has to answer. */
  asks(): boolean;
  /** Text streams from now on: the run works in this process. */
  streams(): void;
  /** Whether a process works on the run, as far as its store knows. */
  atWork(working: boolean): void;
  /** The same object until something changes; parts that did not change stay the same objects. */
  view(): RunView;
}

const NOTHING: Usage = { inputTokens: 0, outputTokens: 0 };

export function createRunReducer(runId: string): RunReducer {
  return new Reducer(runId);
}

/** Streamed pieces that are kept for executions whose first record has not been read yet. */
const MOST_EARLY = 500;

class Reducer implements RunReducer {
  readonly #narrator = createEventDescriber();
  readonly #head: RunHead;
  readonly #tree: RunTree;
  readonly #books = new Map<string, ExecutionReducer>();
  readonly #views = new Map<string, ExecutionView>();
  readonly #dirty = new Set<ExecutionReducer>();
  readonly #told = new ListBuilder<LogItem>();
  readonly #requests = new OpenRequests();
  #early: LiveChunk[] = [];
  #working = true;
  #executions: readonly ExecutionView[] = [];
  #usage = NOTHING;
  #last = "";
  #view: RunView | undefined;

  constructor(runId: string) {
    this.#head = new RunHead(runId);
    this.#tree = new RunTree(runId);
  }

  record(record: ReadRecord): void {
    const { runId, seq, events, entries } = record;
    if (!this.#tree.take(runId, seq)) return;
    this.#view = undefined;
    const touched = new Set<ExecutionReducer>();
    for (const entry of entries) {
      const book = this.#books.get(executionKey(runId, entry.executionId));
      if (book === undefined) continue;
      book.entry(entry);
      touched.add(book);
    }
    const ofRun: LogItem["item"][] = [];
    for (const event of events) {
      const said = this.#narrator.say(event);
      if (said !== undefined) this.#last = lineOf(said);
      if (event.executionId !== undefined) {
        const book = this.#bookOf(event, seq);
        book.event(event, said);
        touched.add(book);
      } else if (runId === this.#head.runId) {
        const item = runBoundaryOf(event, said);
        if (item !== undefined) ofRun.push(item);
      }
      const ended = this.#event(event, record, touched);
      if (ended !== undefined) ofRun.push(ended);
    }
    for (const book of touched) this.#tell(book);
    for (const item of ofRun) this.#told.push({ item });
    this.#told.settle(() => true);
  }

  live(chunk: LiveChunk): void {
    if (this.#head.ended) return;
    const book = this.#books.get(executionKey(chunk.runId, textAt(chunk.chunk, "executionId")));
    if (book === undefined) {
      if (this.#early.length < MOST_EARLY) this.#early.push(chunk);
    } else if (book.stream(chunk)) this.#touch(book);
  }

  requests(open: readonly OpenRequest[]): void {
    if (this.#head.ended || !this.#requests.stored(open)) return;
    this.#view = undefined;
    this.#touchAll((book) => book.asks);
  }

  asks(): boolean {
    return this.#requests.any;
  }

  streams(): void {
    this.#head.streams();
    this.#view = undefined;
  }

  atWork(working: boolean): void {
    if (working === this.#working) return;
    this.#working = working;
    this.#view = undefined;
    this.#stopped(!working);
  }

  view(): RunView {
    this.#view ??= this.#snapshot();
    return this.#view;
  }

  #bookOf(event: SluiceEvent, seq: number): ExecutionReducer {
    const key = executionKey(event.runId, event.executionId ?? "");
    const known = this.#books.get(key);
    if (known !== undefined) return known;
    const book = new ExecutionReducer(event);
    this.#books.set(key, book);
    this.#tree.began(key, book, seq);
    const early = this.#early;
    this.#early = [];
    for (const chunk of early) this.live(chunk);
    return book;
  }

  #tell(book: ExecutionReducer): void {
    this.#dirty.add(book);
    const of = this.#tree.forkOf(book.runId) === undefined ? {} : { sibling: book.stateId };
    for (const item of book.afterRecord()) this.#told.push({ key: book.key, ...of, item });
  }

  /** What an event says beyond its own execution. Returns the end of the run, when it is that. */
  #event(event: SluiceEvent, record: ReadRecord, touched: Set<ExecutionReducer>): RunEndItem | undefined {
    const { type, data, runId } = event;
    const isRoot = runId === this.#head.runId;
    switch (type) {
      case "run.started":
        if (isRoot) this.#head.start(event);
        if (isRoot) this.#tree.shaped(field(data, "shape"));
        break;
      case "run.suspended":
      case "run.resumed":
        if (isRoot) this.#head.suspend(type === "run.suspended");
        if (isRoot) this.#stopped(true);
        if (isRoot && type === "run.resumed") this.#working = true;
        break;
      case "run.finished":
        this.#cutOff(event, touched);
        if (isRoot) return this.#finish(event, record.end);
        break;
      case "fanOut.started":
        this.#tree.forked(event, record.seq);
        this.#touchAll((book) => this.#tree.forkOf(book.runId) !== undefined);
        break;
      case "fanOut.joined":
        this.#tree.joined(event);
        break;
      case "route.decided":
        this.#tree.routed(event);
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
    return undefined;
  }

  /** A run that was ended from outside leaves its executions and its requests as they were. */
  #cutOff({ runId, data, at }: SluiceEvent, touched: Set<ExecutionReducer>): void {
    for (const book of this.#books.values()) {
      if (book.runId !== runId || book.ended) continue;
      book.cutOff(at, textAt(data, "reason"));
      touched.add(book);
    }
    this.#requests.closed((request) => request.runId === runId);
  }

  #finish(event: SluiceEvent, end: RunEnd | undefined): RunEndItem {
    const item = this.#head.finish(event, end);
    this.#last = `run ${item.status}`;
    this.#requests.closed(() => true);
    this.#early = [];
    this.#stopped(true);
    return item;
  }

  /** Whether somebody is at work on what is unfinished has changed; what streamed until now is cut off. */
  #stopped(cut: boolean): void {
    this.#touchAll((book) => (cut && book.dropLive()) || !book.ended);
  }

  #touch(book: ExecutionReducer): void {
    this.#dirty.add(book);
    this.#view = undefined;
  }

  #touchAll(which: (book: ExecutionReducer) => boolean): void {
    for (const book of this.#books.values()) if (which(book)) this.#dirty.add(book);
  }

  #snapshot(): RunView {
    const suspended = !this.#head.ended && (this.#head.suspended || !this.#working);
    if (this.#dirty.size > 0) this.#refresh(suspended);
    const { caps, ...head } = this.#head.view();
    const requests = this.#requests.view();
    return {
      ...head,
      status: suspended ? "suspended" : head.status === "running" && requests.length > 0 ? "waiting" : head.status,
      ...this.#tree.view(),
      executions: this.#executions,
      requests,
      caps,
      usage: this.#usage,
      last: this.#last,
      log: this.#told.view(),
    };
  }

  #refresh(suspended: boolean): void {
    let spent = false;
    for (const book of this.#dirty) {
      const { runId, stateId } = book;
      const fork = this.#tree.forkOf(runId);
      const turnCap = this.#tree.turnCapOf(stateId);
      const around: ReducerContext = {
        suspended,
        ...(fork === undefined ? {} : { fork }),
        ...(turnCap === undefined ? {} : { turnCap }),
        isOpen: (requestId) => this.#requests.isOpen({ runId, requestId }),
      };
      spent ||= this.#views.get(book.key)?.usage !== book.usage;
      this.#views.set(book.key, book.view(around));
    }
    this.#dirty.clear();
    this.#executions = this.#tree.order().flatMap((key) => this.#views.get(key) ?? []);
    if (spent) this.#usage = this.#executions.reduce((sum, { usage }) => addUsage(sum, usage), NOTHING);
  }
}
