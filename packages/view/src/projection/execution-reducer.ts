import { field, type LiveChunk, type SluiceEvent } from "@sluice/core";
import { addUsage, itemKeyOf, NO_USAGE, parseExecutionId } from "@sluice/core/runtime";
import type { TranscriptEntry } from "@sluice/stages";
import type { EventContext, EventLine } from "../words/describe-event.ts";
import { numberAt, textAt, textsAt, timeAt, usageAt } from "../words/fields.ts";
import type { ExecutionStatus } from "../words/symbols.ts";
import { oneLine } from "../words/words.ts";
import { ListBuilder } from "./append-only-list.ts";
import { CallReducer, isFinal } from "./call-reducer.ts";
import { type KindEntry, KindReducer } from "./kind-reducer.ts";
import { LiveText } from "./live-text.ts";
import type { BoundaryItem, ExecutionView, ModelUsage, Rest, TranscriptItem, TurnView } from "./run-view.ts";

const ENDS: ReadonlySet<string> = new Set<ExecutionStatus>(["completed", "failed", "skipped", "paused", "cancelled"]);

/** Events that a transcript shows as notes; calls are items themselves. */
const NOTED: ReadonlySet<string> = new Set([
  "stage.precondition",
  "stage.exit",
  "model.retried",
  "model.fallback",
  "model.warned",
  "sleep.started",
  "sleep.ended",
  "attempt.finished",
  "grant.answered",
  "grant.expired",
  "request.answered",
  "request.expired",
  "transition.rejected",
  "execution.interrupted",
  "execution.suspended",
  "interrupt.started",
  "interrupt.returned",
  "route.rejected",
  "route.decided",
  "limit.near",
  "limit.reached",
]);
const NOT_RUN = "not run: the stage continued without it";

/** Facts about the run that an execution's view depends on. */
export interface ReducerContext {
  /** No process executes the run. */
  readonly suspended: boolean;
  /** Nothing wakes it: a person suspended it. */
  readonly stays: boolean;
  readonly facts: Pick<ExecutionView, "fork" | "invoked" | "handles" | "interrupted" | "turnCap">;
  /** How long it did not work until its end, by the spans of the run. */
  restOf(from: number, to: number | undefined): Pick<ExecutionView, "rests" | "restMs" | "restingSince">;
  isOpen(requestId: string): boolean;
}

/** One execution of a state, reduced from its run's records in order. */
export class ExecutionReducer {
  readonly key: string;
  readonly runId: string;
  readonly executionId: string;
  readonly stateId: string;
  readonly item: string | undefined;
  readonly #visit: number;
  readonly #startedAt: number;
  readonly #items = new ListBuilder<TranscriptItem>();
  readonly #calls = new CallReducer(this.#items);
  /** Created by the first entry, since stages have none. */
  #kinds: KindReducer | undefined;
  readonly #live = new LiveText();
  readonly #requests = new Set<string>();
  readonly #spent = new Map<string, ModelUsage>();
  readonly #turnLog = new Map<string, Omit<TurnView, "restMs">>();
  #status: ExecutionStatus = "running";
  #attempt = 0;
  #turn = 0;
  #turns = 0;
  #usage = NO_USAGE;
  #model = "";
  #sleeps = 0;
  #nextWakeAt: number | undefined;
  #polled: ExecutionView["polled"];
  #updatedAt: number;
  /** The process that recorded its last events. */
  #incarnation = "";
  #endedAt: number | undefined;
  #tools: readonly string[] | undefined;
  /** Feedback of the attempt that was sent back. */
  #feedback: string | undefined;
  /** Who interrupted it and why; '' for an execution that no person interrupted. */
  #interruption = "";
  #fault: string | undefined;
  /** It waits for a provider, also while other parts of the run work. */
  #isSuspended = false;
  /** The interrupt that it waits for. */
  #interrupt: string | undefined;

  constructor({ runId, executionId = "", at }: SluiceEvent) {
    this.key = executionKey(runId, executionId);
    this.runId = runId;
    this.executionId = executionId;
    const { state: stateId, visit } = parseExecutionId(executionId);
    this.stateId = stateId;
    this.item = itemKeyOf(runId, stateId);
    this.#visit = visit;
    this.#startedAt = at;
    this.#updatedAt = at;
  }

  get ended(): boolean {
    return this.#endedAt !== undefined;
  }

  get endedAt(): number | undefined {
    return this.#endedAt;
  }

  get hasRequests(): boolean {
    return this.#requests.size > 0;
  }

  /** What earlier events say about the subject of this one. */
  contextOf({ data, attempt = 1 }: SluiceEvent): EventContext {
    const call = this.#calls.summaryOf(attempt, textAt(data, "callId"));
    const interrupt = this.#interrupt === undefined ? {} : { interrupt: this.#interrupt };
    const until = this.#nextWakeAt === undefined ? {} : { until: this.#nextWakeAt };
    return { turns: this.#turns, usage: this.#usage, ...(call === undefined ? {} : { call }), ...interrupt, ...until };
  }

  /** What the state's own work recorded. `of` is its kind; `shiftMs` is how far the times of its run are moved. */
  kindEntry(entry: KindEntry, of: string, incarnation: string, shiftMs: number): void {
    this.#kinds ??= new KindReducer(this.#items);
    // The time between two processes belongs to none of them; an entry has its own times as they were recorded.
    this.#kinds.entry(entry, of, incarnation === this.#incarnation ? this.#updatedAt - shiftMs : undefined);
  }

  /** The process that recorded its events up to now. */
  recordedBy(incarnation: string): void {
    this.#incarnation = incarnation;
  }

  entry(entry: TranscriptEntry): void {
    const { attempt, turn } = entry;
    this.#live.end(attempt, turn);
    if (entry.kind === "call") this.#calls.proposed(entry);
    else if (entry.kind === "result") this.#calls.result(entry);
    else this.#items.push(entry);
  }

  event(event: SluiceEvent, line: EventLine): void {
    const { type, data, at, attempt = 1 } = event;
    this.#updatedAt = at;
    this.#calls.event(event);
    const isShown = this.#kinds?.event(event) === true;
    switch (type) {
      case "attempt.started":
        this.#calls.endTurns(attempt, 0, NOT_RUN);
        this.#live.end(attempt - 1, Number.POSITIVE_INFINITY);
        this.#attempt = attempt;
        this.#turn = 0;
        this.#running();
        break;
      case "stage.setup":
        if (textAt(data, "phase") === "left")
          this.#tools = Array.isArray(data.tools) ? textsAt(data, "tools") : this.#tools;
        break;
      case "stage.precondition":
        if (textAt(data, "answer") === "retry") this.#retry(line.more);
        else if (textAt(data, "phase") === "left") this.#running();
        break;
      case "turn.started": {
        const turn = numberAt(data, "turn");
        this.#calls.endTurns(attempt, turn, NOT_RUN);
        this.#live.end(attempt, turn, numberAt(data, "try") - 1);
        this.#turn = turn;
        this.#model = textAt(data, "model");
        this.#logTurn(attempt, turn, { model: this.#model, tries: numberAt(data, "try") }, at);
        this.#running();
        break;
      }
      case "turn.finished":
        this.#turnFinished(event);
        break;
      case "sleep.started": {
        this.#sleeps += 1;
        this.#nextWakeAt = timeAt(data, "until");
        this.#polled = polledIn(data);
        this.#running();
        break;
      }
      case "sleep.ended":
        this.#nextWakeAt = undefined;
        break;
      case "interrupt.returned":
        this.#interrupt = undefined;
        break;
      case "interrupt.started":
        this.#interrupt = textAt(data, "interrupt");
        this.#calls.endTurns(attempt, this.#turn + 1, `not run: the interrupt ${textAt(data, "interrupt")} came first`);
        break;
      case "execution.suspended":
        this.#isSuspended = true;
        this.#retry(textAt(data, "message"));
        break;
      case "execution.continued":
        this.#isSuspended = false;
        break;
      case "model.fallback":
      case "model.retried":
        this.#live.end(attempt, numberAt(data, "turn"), numberAt(data, "try"));
        this.#retry(textAt(data, "message"));
        break;
      case "grant.requested":
      case "request.opened":
        this.#requests.add(textAt(data, "requestId"));
        break;
      case "grant.answered":
      case "grant.expired":
      case "request.answered":
      case "request.expired":
        this.#requests.delete(textAt(data, "requestId"));
        break;
      case "execution.interrupted": {
        const [by, why] = [textAt(data, "by"), textAt(data, "reason")];
        this.#interruption = `interrupted by ${by === "" ? "a person" : by}${why === "" ? "" : `: ${why}`}`;
        break;
      }
      case "attempt.finished":
        this.#attemptFinished(event);
        break;
      case "stage.exit":
        if (textAt(data, "phase") === "left") this.#exited(event, line);
        break;
      default:
        break;
    }
    if (type === "attempt.started") this.#items.push(this.#attemptHead(attempt));
    else if (
      (NOTED.has(type) || isQuestion(event)) &&
      !isShown &&
      !isRepeated(event) &&
      (!line.isDetail || line.tone !== "plain")
    )
      this.#items.push(noteOf(line));
  }

  /** Call after each record. Returns the items that became final. */
  afterRecord(): readonly TranscriptItem[] {
    this.#calls.afterRecord();
    return this.#items.settle(isFinal);
  }

  /** Its run ended from outside, before the execution did. */
  cancel(at: number, why: string): void {
    if (this.ended) return;
    this.#calls.endTurns(Number.POSITIVE_INFINITY, 0, NOT_RUN);
    this.#kinds?.end("cancelled");
    this.#end("cancelled", at, why === "" ? undefined : why);
    const text = why === "" ? "cancelled" : `cancelled: ${why}`;
    this.#items.push({ kind: "boundary", rank: "note", text, tone: "bad" });
  }

  /** Returns whether anything changed. */
  stream({ channel, chunk }: LiveChunk): boolean {
    return !this.ended && this.#live.add(channel, chunk);
  }

  dropLive(): boolean {
    return this.#live.drop();
  }

  view({ suspended, stays, facts, isOpen, restOf }: ReducerContext): ExecutionView {
    const live = this.#live.view();
    const fault = this.#fault ?? this.#feedback;
    const isWaiting = [...this.#requests].some(isOpen);
    const nextWakeAt = this.ended || stays ? undefined : this.#nextWakeAt;
    const own = facts.interrupted === undefined ? this.#status : "interrupted";
    const still = nextWakeAt !== undefined ? "sleeping" : suspended || this.#isSuspended ? "suspended" : own;
    const unfinished = isWaiting ? "waiting" : still;
    const rested = restOf(this.#startedAt, this.#endedAt);
    return {
      key: this.key,
      runId: this.runId,
      executionId: this.executionId,
      stateId: this.stateId,
      visit: this.#visit,
      ...(this.item === undefined ? {} : { item: this.item }),
      status: this.ended ? this.#status : unfinished,
      attempt: Math.max(1, this.#attempt),
      turn: this.#turn,
      turns: this.#turns,
      usage: this.#usage,
      spent: [...this.#spent.values()],
      turnLog: [...this.#turnLog.values()].map((turn) => ({ ...turn, restMs: restMsIn(rested.rests, turn) })),
      startedAt: this.#startedAt,
      updatedAt: this.#updatedAt,
      ...(this.#endedAt === undefined ? {} : { endedAt: this.#endedAt }),
      sleeps: this.#sleeps,
      ...(nextWakeAt === undefined ? {} : { nextWakeAt }),
      ...(nextWakeAt === undefined || this.#polled === undefined ? {} : { polled: this.#polled }),
      ...rested,
      ...facts,
      ...(this.#tools === undefined ? {} : { tools: this.#tools }),
      ...(fault === undefined || fault === "" ? {} : { fault }),
      items: this.#items.view(),
      ...(live === undefined ? {} : { live }),
    };
  }

  #running(): void {
    this.#status = "running";
    this.#fault = undefined;
  }

  #retry(why: string): void {
    this.#status = "retrying";
    this.#fault = why;
  }

  #attemptHead(attempt: number): BoundaryItem {
    const parts = [oneLine(this.stateId, 64)];
    if (this.item !== undefined) parts.push(oneLine(this.item, 200));
    if (this.#visit > 1) parts.push(`visit ${this.#visit}`);
    if (attempt > 1) parts.push(`attempt ${attempt}`);
    return { kind: "boundary", rank: "attempt", text: parts.join(" · "), tone: attempt > 1 ? "notice" : "plain" };
  }

  #logTurn(attempt: number, turn: number, change: Partial<Omit<TurnView, "restMs">>, at: number): void {
    const key = `${attempt}.${turn}`;
    const known = this.#turnLog.get(key) ?? { attempt, turn, model: "", tries: 1, from: at };
    this.#turnLog.set(key, { ...known, ...change });
  }

  #turnFinished({ data, at, attempt = 1 }: SluiceEvent): void {
    const turn = numberAt(data, "turn");
    this.#live.end(attempt, turn);
    this.#calls.endTurns(attempt, turn + 1, NOT_RUN);
    this.#turns += 1;
    const usage = usageAt(data);
    this.#usage = addUsage(this.#usage, usage);
    this.#logTurn(attempt, turn, { to: at, usage }, at);
    addSpent(this.#spent, { model: this.#model, usage, turns: 1 });
  }

  #attemptFinished({ data, attempt = 1 }: SluiceEvent): void {
    this.#live.end(attempt, Number.POSITIVE_INFINITY);
    this.#calls.endTurns(attempt + 1, 0, NOT_RUN);
    const outcome = textAt(data, "outcome");
    if (outcome === "retry") {
      this.#feedback = textAt(data, "feedback");
      this.#retry(this.#feedback);
    } else if (outcome === "failed") this.#fault = textAt(data, "message") || textAt(data, "code");
  }

  #exited({ data, at }: SluiceEvent, { more }: EventLine): void {
    const outcome = textAt(data, "outcome");
    // Present if the execution used more than its turns.
    if (field(data, "usage") !== undefined) this.#usage = usageAt(data);
    const status = isEnd(outcome) ? outcome : "failed";
    const left = this.#interrupt === undefined ? this.#interruption : more;
    const fault = textAt(data, "fault") || (outcome === "cancelled" ? left : "");
    this.#end(status, at, fault === "" ? this.#fault : fault);
  }

  #end(status: ExecutionStatus, at: number, fault: string | undefined): void {
    this.#status = status;
    this.#nextWakeAt = undefined;
    this.#endedAt = at;
    this.#live.drop();
    this.#requests.clear();
    this.#feedback = undefined;
    this.#fault = status === "completed" ? undefined : fault;
  }
}

/** The usage of all executions by model, in the order of first use. */
export function usageByModel(executions: readonly ExecutionView[]): readonly ModelUsage[] {
  const models = new Map<string, ModelUsage>();
  for (const { spent } of executions) for (const one of spent) addSpent(models, one);
  return [...models.values()];
}

function addSpent(models: Map<string, ModelUsage>, { model, usage, turns }: ModelUsage): void {
  const sum = models.get(model) ?? { usage: NO_USAGE, turns: 0 };
  models.set(model, { model, usage: addUsage(sum.usage, usage), turns: sum.turns + turns });
}

/** Milliseconds of a turn in which its execution rested. */
function restMsIn(rests: readonly Rest[], { from, to }: Pick<TurnView, "from" | "to">): number {
  if (to === undefined) return 0;
  return rests.reduce((sum, rest) => sum + Math.max(0, Math.min(to, rest.to ?? to) - Math.max(from, rest.from)), 0);
}

export function executionKey(runId: string, executionId: string): string {
  return `${runId}:${executionId}`;
}

function isEnd(outcome: string): outcome is ExecutionStatus {
  return ENDS.has(outcome);
}

/** The line of an event as a note in a transcript or a log. */
export function noteOf({ what, more, tone }: EventLine): BoundaryItem {
  const isShown = tone === "good" || tone === "bad" || tone === "notice";
  return {
    kind: "boundary",
    rank: "note",
    text: more === "" ? what : `${what}: ${more}`,
    tone: isShown ? tone : "plain",
  };
}

function polledIn(data: SluiceEvent["data"]): ExecutionView["polled"] {
  const { attempt, exitCode } = data;
  if (typeof attempt !== "number") return undefined;
  return { attempt, ...(typeof exitCode === "number" ? { exitCode } : {}) };
}

/** Whether a state asks a person: there is no call whose item shows the question. */
function isQuestion({ type, data }: SluiceEvent): boolean {
  return type === "request.opened" && data.kind === "humanState";
}

/** Whether the item of a call shows the same: who approved or denied it, or why its event or choice was refused. */
function isRepeated({ type, data }: SluiceEvent): boolean {
  if (type === "transition.rejected" || type === "route.rejected") return data.callId !== undefined;
  return type === "grant.answered" && (data.answer === "approve" || data.answer === "deny");
}
