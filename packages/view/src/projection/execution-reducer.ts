import { addUsage, field, type LiveChunk, type SluiceEvent, type Usage } from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";
import { parseExecutionId } from "../words/audit-filter.ts";
import type { EventLine } from "../words/event-lines.ts";
import { numberAt, textAt, usageAt } from "../words/fields.ts";
import { ListBuilder } from "./append-only-list.ts";
import { boundaryOf, note } from "./boundaries.ts";
import { CallReducer, isFinal } from "./call-reducer.ts";
import { LiveText } from "./live-text.ts";
import type { ExecutionStatus, ExecutionView, ModelUsage, TranscriptItem } from "./run-view.ts";

const NOTHING: Usage = { inputTokens: 0, outputTokens: 0 };
const ENDS: ReadonlySet<string> = new Set<ExecutionStatus>(["completed", "failed", "skipped", "paused", "cancelled"]);

/** What the rest of the run says about an execution. */
export interface ReducerContext {
  /** Nobody works on the run now. */
  readonly suspended: boolean;
  readonly fork?: NonNullable<ExecutionView["fork"]>;
  readonly turnCap?: number;
  isOpen(requestId: string): boolean;
}

/** One execution of a state, put together from its run's records in their order. */
export class ExecutionReducer {
  readonly key: string;
  readonly runId: string;
  readonly executionId: string;
  readonly stateId: string;
  readonly #visit: number;
  readonly #startedAt: number;
  readonly #items = new ListBuilder<TranscriptItem>();
  readonly #calls = new CallReducer(this.#items);
  readonly #live = new LiveText();
  readonly #asking = new Set<string>();
  readonly #spent = new Map<string, ModelUsage>();
  #status: ExecutionStatus = "running";
  #attempt = 0;
  #turn = 0;
  #turns = 0;
  #usage = NOTHING;
  #model = "";
  #endedAt: number | undefined;
  #tools: readonly string[] | undefined;
  #sentBack: string | undefined;
  #trouble: string | undefined;

  constructor({ runId, executionId = "", at }: SluiceEvent) {
    this.key = executionKey(runId, executionId);
    this.runId = runId;
    this.executionId = executionId;
    const { stateId, visit } = parseExecutionId(executionId);
    this.stateId = stateId;
    this.#visit = visit;
    this.#startedAt = at;
  }

  get ended(): boolean {
    return this.#endedAt !== undefined;
  }

  get asks(): boolean {
    return this.#asking.size > 0;
  }

  get usage(): Usage {
    return this.#usage;
  }

  entry(entry: TranscriptEntry): void {
    const { attempt, turn } = entry;
    // What streamed until now stands here whole.
    this.#live.end(attempt, turn);
    if (entry.kind === "call") this.#calls.proposed(entry);
    else if (entry.kind === "result") this.#calls.result(entry);
    else this.#items.push(entry);
  }

  event(event: SluiceEvent, said: EventLine | undefined): void {
    const { type, data, at, attempt = 1 } = event;
    this.#calls.event(event);
    switch (type) {
      case "attempt.started":
        this.#calls.endTurns(attempt, 0, NOT_RUN);
        this.#live.end(attempt - 1, Number.POSITIVE_INFINITY);
        this.#attempt = attempt;
        this.#turn = 0;
        this.#goOn();
        break;
      case "stage.setup":
        if (textAt(data, "phase") === "left") this.#tools = textsAt(field(data, "tools")) ?? this.#tools;
        break;
      case "stage.precondition":
        if (textAt(data, "answer") === "retry") this.#retry(said?.more ?? "");
        else if (textAt(data, "phase") === "left") this.#goOn();
        break;
      case "turn.started": {
        const turn = numberAt(data, "turn");
        this.#calls.endTurns(attempt, turn, NOT_RUN);
        this.#live.end(attempt, turn, numberAt(data, "try") - 1);
        this.#turn = turn;
        this.#model = textAt(data, "model");
        this.#goOn();
        break;
      }
      case "turn.finished":
        this.#turnOver(event);
        break;
      case "model.retried":
        this.#live.end(attempt, numberAt(data, "turn"), numberAt(data, "try"));
        this.#retry(textAt(data, "message"));
        break;
      case "grant.requested":
      case "request.opened":
        this.#asking.add(textAt(data, "requestId"));
        break;
      case "grant.answered":
      case "grant.expired":
      case "request.answered":
      case "request.expired":
        this.#asking.delete(textAt(data, "requestId"));
        break;
      case "attempt.finished":
        this.#attemptOver(event);
        break;
      case "stage.exit":
        if (textAt(data, "phase") === "left") this.#left(event, at);
        break;
      default:
        break;
    }
    const boundary = boundaryOf(event, said);
    if (boundary !== undefined) this.#items.push(boundary);
  }

  /** A record was read whole. Returns what became final. */
  afterRecord(): readonly TranscriptItem[] {
    this.#calls.afterRecord();
    return this.#items.settle(isFinal);
  }

  /** Its run ended without its own end: nobody was at work on it. */
  cutOff(at: number, why: string): void {
    if (this.ended) return;
    this.#calls.endTurns(Number.POSITIVE_INFINITY, 0, NOT_RUN);
    this.#end("cancelled", at, why === "" ? undefined : why);
    this.#items.push(note(why === "" ? "cancelled" : `cancelled ${why}`, "bad"));
  }

  /** Whether anything changed. */
  stream({ channel, chunk }: LiveChunk): boolean {
    return !this.ended && this.#live.add(channel, chunk);
  }

  dropLive(): boolean {
    return this.#live.drop();
  }

  view({ suspended, fork, turnCap, isOpen }: ReducerContext): ExecutionView {
    const live = this.#live.view();
    const fault = this.#trouble ?? this.#sentBack;
    const waits = [...this.#asking].some(isOpen);
    const unfinished = waits ? "waiting" : suspended ? "suspended" : this.#status;
    return {
      key: this.key,
      runId: this.runId,
      executionId: this.executionId,
      stateId: this.stateId,
      visit: this.#visit,
      status: this.ended ? this.#status : unfinished,
      attempt: Math.max(1, this.#attempt),
      turn: this.#turn,
      turns: this.#turns,
      ...(turnCap === undefined ? {} : { turnCap }),
      usage: this.#usage,
      spent: [...this.#spent.values()],
      startedAt: this.#startedAt,
      ...(this.#endedAt === undefined ? {} : { endedAt: this.#endedAt }),
      ...(fork === undefined ? {} : { fork }),
      ...(this.#tools === undefined ? {} : { tools: this.#tools }),
      ...(fault === undefined || fault === "" ? {} : { fault }),
      items: this.#items.view(),
      ...(live === undefined ? {} : { live }),
    };
  }

  #goOn(): void {
    this.#status = "running";
    this.#trouble = undefined;
  }

  #retry(why: string): void {
    this.#status = "retrying";
    this.#trouble = why;
  }

  #turnOver({ data, attempt = 1 }: SluiceEvent): void {
    const turn = numberAt(data, "turn");
    this.#live.end(attempt, turn);
    this.#calls.endTurns(attempt, turn + 1, NOT_RUN);
    this.#turns += 1;
    const usage = usageAt(data);
    this.#usage = addUsage(this.#usage, usage);
    const before = this.#spent.get(this.#model);
    const sum = before === undefined ? usage : addUsage(before.usage, usage);
    this.#spent.set(this.#model, { model: this.#model, usage: sum, turns: (before?.turns ?? 0) + 1 });
  }

  #attemptOver({ data, attempt = 1 }: SluiceEvent): void {
    this.#live.end(attempt, Number.POSITIVE_INFINITY);
    this.#calls.endTurns(attempt + 1, 0, NOT_RUN);
    const outcome = textAt(data, "outcome");
    if (outcome === "retry") {
      this.#sentBack = textAt(data, "feedback");
      this.#retry(this.#sentBack);
    } else if (outcome === "failed") this.#trouble = textAt(data, "message") || textAt(data, "code");
  }

  #left({ data }: SluiceEvent, at: number): void {
    const outcome = textAt(data, "outcome");
    // It has a usage where there is more to it than its turns.
    if (field(data, "usage") !== undefined) this.#usage = usageAt(data);
    const status = isEnd(outcome) ? outcome : "failed";
    const fault = textAt(data, "fault");
    this.#end(status, at, fault === "" ? this.#trouble : fault);
  }

  #end(status: ExecutionStatus, at: number, fault: string | undefined): void {
    this.#status = status;
    this.#endedAt = at;
    this.#live.drop();
    this.#asking.clear();
    this.#sentBack = undefined;
    this.#trouble = status === "completed" ? undefined : fault;
  }
}

const NOT_RUN = "it was not run: the stage went on without it";

export function executionKey(runId: string, executionId: string): string {
  return `${runId}:${executionId}`;
}

function isEnd(outcome: string): outcome is ExecutionStatus {
  return ENDS.has(outcome);
}

function textsAt(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined;
}
