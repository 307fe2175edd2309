import { field, type Json, type SluiceEvent } from "@sluice/core";
import { numberAt, textAt } from "../../words/fields.ts";
import { moment } from "../../words/words.ts";
import { type AppendOnlyList, ListBuilder } from "../append-only-list.ts";
import { executionKey } from "../execution-reducer.ts";
import type { TimeSpan } from "../run-view.ts";
import { type Rested, Rests } from "./rests.ts";

const PROCESS_ENDED = "unknown: the process ended";

/** When models streamed, tools ran, states slept, requests were open and no process executed the run. */
export class TimeReducer {
  readonly #spans = new ListBuilder<TimeSpan>();
  readonly #rests = new Rests();
  /** Indexes of spans without an end. */
  readonly #open = new Map<string, number>();
  /** When waits for a provider are planned to end. */
  readonly #planned = new Map<string, number>();
  /** The last event of each execution: the process that recorded it, in the order of the processes. */
  readonly #processOf = new Map<string, number>();
  #process = 0;
  /** When this process began to execute the run. */
  #processAt = 0;
  /** The record of the last event. */
  #record = "";
  /** The latest time of all events, and of those before the last record. */
  #last: number | undefined;
  #before: number | undefined;
  /** The spans of a run whose process was killed, until its next event. */
  #killedView: AppendOnlyList<TimeSpan> | undefined;

  event(event: SluiceEvent): void {
    const { type, data, at, runId, executionId = "", attempt = 1 } = event;
    const key = executionKey(runId, executionId);
    // A run calls one model at a time.
    const [model, pause] = [`model ${runId}`, `pause ${runId}`];
    const call = `call ${key} ${attempt} ${textAt(data, "callId")}`;
    this.#killedView = undefined;
    this.#reach(event);
    if (executionId !== "") {
      this.#rests.executed(runId, key);
      this.#processOf.set(key, this.#process);
    }
    if (ENDS_MODEL.has(type)) this.#close(model, at);
    if (ENDS_PAUSE.has(type)) this.#endPause(pause, at);
    switch (type) {
      case "turn.started": {
        const tries = numberAt(data, "try");
        const label = `turn ${numberAt(data, "turn")}${tries > 1 ? `, try ${tries}` : ""}: ${textAt(data, "model")}`;
        this.#begin(model, { key, kind: "model", from: at, label });
        break;
      }
      case "model.retried": {
        const label = `waiting before try ${numberAt(data, "try") + 1}`;
        this.#begin(pause, { key, kind: "pause", from: at, label });
        this.#planned.set(pause, at + Math.max(0, numberAt(data, "waitMs")));
        break;
      }
      case "call.started":
        this.#begin(call, { key, kind: "tool", from: at, label: `${textAt(data, "tool")}: not recorded how it ended` });
        break;
      case "call.finished": {
        const label = `${textAt(data, "tool")}: ${textAt(data, "outcome")}`;
        const from = at - Math.max(0, numberAt(data, "ms"));
        if (!this.#replace(call, { key, kind: "tool", from, to: at, label }))
          this.#spans.push({ key, kind: "tool", from, to: at, label });
        break;
      }
      case "grant.requested":
      case "request.opened": {
        const body = field(data, "body");
        const subject = textAt(body, "tool") || textAt(body, "question");
        const label = `waiting for a person${subject === "" ? "" : `: ${subject}`}`;
        this.#begin(requestKey(event), { key, kind: "person", from: at, label });
        break;
      }
      case "grant.answered":
      case "grant.expired":
      case "request.answered":
      case "request.expired":
        this.#close(requestKey(event), at);
        break;
      case "interrupt.started": {
        const label = `interrupted by ${textAt(data, "interrupt")}, for ${textAt(data, "to")}`;
        this.#begin(`interrupt ${key}`, { key, kind: "interrupted", from: at, label });
        break;
      }
      case "interrupt.returned":
      case "stage.exit":
        this.#close(`interrupt ${key}`, at);
        break;
      case "sleep.started":
        this.#begin(`sleep ${key}`, { key, kind: "sleep", from: at, label: sleepLabel(data) });
        this.#rests.began(key, at);
        break;
      case "sleep.ended":
        this.#close(`sleep ${key}`, at);
        this.#rests.ended(key, at);
        break;
      case "execution.suspended":
        this.#begin(`held ${key}`, {
          key,
          kind: "pause",
          from: at,
          label: `waiting for the provider: ${textAt(data, "code")}`,
        });
        this.#rests.began(key, at);
        break;
      case "execution.continued":
        this.#close(`held ${key}`, at);
        this.#rests.ended(key, at);
        break;
      case "run.suspended":
        this.#stop({ kind: "suspended", from: at, label: "suspended" });
        break;
      case "run.forked":
        this.#stop({ kind: "suspended", from: this.#before ?? at, label: "forked here from another run" });
        this.#processStarts(at);
        break;
      case "run.resumed":
        if (!this.#open.has(STOPPED)) this.#stop({ kind: "unknown", from: this.#before ?? at, label: PROCESS_ENDED });
        this.#processStarts(at);
        break;
      case "run.started":
        this.#rests.runStarted(runId, at);
        if (!runId.includes("/")) this.#processAt = at;
        break;
      case "run.finished":
        if (!runId.includes("/")) this.#runs(at);
        this.#rests.runEnded(runId, at);
        this.#close(model, at);
        this.#endPause(pause, at);
        // A run that is cancelled from outside records no end of its sleeps and calls.
        for (const open of [...this.#open.keys()])
          if (ENDS_WITH_RUN.some((kind) => open.startsWith(`${kind} ${runId}:`))) this.#close(open, at);
        break;
      default:
        break;
    }
    this.#spans.settle(({ to }) => to !== undefined);
  }

  /** Call before the event that cancels a run from outside. No process executed what has not ended until then. */
  abandoned(keys: readonly string[], event: SluiceEvent): void {
    this.#reach(event);
    if (this.#open.has(STOPPED)) return;
    if (event.data.unattended === true || keys.some((key) => this.#processOf.get(key) === this.#process)) {
      // Its process would have recorded their ends.
      this.#stop({ kind: "unknown", from: this.#before ?? event.at, label: PROCESS_ENDED });
      return;
    }
    for (const key of keys) {
      this.#rests.began(key, this.#processAt);
      this.#rests.ended(key, event.at);
    }
  }

  /** `isKilled`: no process executes the run, and it recorded no suspension. */
  view(isKilled: boolean): AppendOnlyList<TimeSpan> {
    const killedAt = this.#killedAt(isKilled);
    if (killedAt === undefined) return this.#spans.view();
    if (this.#killedView === undefined) {
      const spans = new ListBuilder<TimeSpan>();
      for (const span of this.#spans.view())
        spans.push(
          span.to === undefined && STOPS.has(span.kind) ? { ...span, to: Math.max(span.from, killedAt) } : span,
        );
      spans.push({ kind: "unknown", from: killedAt, label: PROCESS_ENDED });
      this.#killedView = spans.view();
    }
    return this.#killedView;
  }

  /** When an execution did not work. */
  restOf(key: string, from: number, to: number | undefined, isKilled: boolean): Rested {
    return this.#rests.of(key, from, to, this.#killedAt(isKilled));
  }

  #killedAt(isKilled: boolean): number | undefined {
    return isKilled && !this.#open.has(STOPPED) ? this.#last : undefined;
  }

  /** Counts the time of an event. A fork's own start is later than what it copied. */
  #reach({ id, runId, type, data, at }: SluiceEvent): void {
    const record = id.slice(0, id.lastIndexOf("/"));
    if (record !== this.#record) {
      this.#record = record;
      this.#before = this.#last;
    }
    if (type === "run.started" && !runId.includes("/") && field(data, "forkedFrom") !== undefined) return;
    this.#last = Math.max(this.#last ?? at, at);
  }

  /** From here on no process executes the run. */
  #stop(span: TimeSpan): void {
    if (this.#open.has(STOPPED)) return;
    for (const open of [...this.#open.keys()]) {
      if (open.startsWith("model ") || open.startsWith("call ")) this.#close(open, span.from);
      if (open.startsWith("pause ")) this.#endPause(open, span.from);
    }
    this.#begin(STOPPED, span);
    this.#rests.began("", span.from);
  }

  #processStarts(at: number): void {
    this.#runs(at);
    this.#process += 1;
    this.#processAt = at;
  }

  #runs(at: number): void {
    this.#close(STOPPED, at);
    this.#rests.ended("", at);
  }

  #endPause(pause: string, at: number): void {
    this.#close(pause, Math.min(at, this.#planned.get(pause) ?? at));
  }

  #begin(key: string, span: TimeSpan): void {
    this.#close(key, span.from);
    this.#open.set(key, this.#spans.length);
    this.#spans.push(span);
  }

  #close(key: string, to: number): void {
    const index = this.#open.get(key);
    const span = index === undefined ? undefined : this.#spans.at(index);
    if (span !== undefined) this.#replace(key, { ...span, to: Math.max(span.from, to) });
  }

  /** Returns whether there was an open span with this key. */
  #replace(key: string, span: TimeSpan): boolean {
    const index = this.#open.get(key);
    if (index === undefined) return false;
    this.#open.delete(key);
    this.#spans.replace(index, span);
    return true;
  }
}

/** The key of the span in which no process executes the run. */
const STOPPED = "run";

/** What a run that is cancelled from outside leaves open. */
const ENDS_WITH_RUN = ["sleep", "held", "call"] as const;

/** What cannot continue without a process, or is not known to. */
const STOPS: ReadonlySet<TimeSpan["kind"]> = new Set<TimeSpan["kind"]>(["model", "tool", "pause"]);

function sleepLabel(data: Json): string {
  const until = field(data, "until");
  return typeof until === "number" ? `asleep until ${moment(until)}` : "asleep";
}

const ENDS_PAUSE: ReadonlySet<string> = new Set<SluiceEvent["type"]>([
  "turn.started",
  "attempt.finished",
  "stage.exit",
]);

const ENDS_MODEL: ReadonlySet<string> = new Set<SluiceEvent["type"]>([
  "execution.suspended",
  "model.fallback",
  "model.retried",
  "call.decided",
  "completion.accepted",
  "completion.rejected",
  "call.finished",
  "turn.finished",
  "grant.requested",
  "request.opened",
  "execution.suspended",
  "attempt.finished",
  "stage.exit",
]);

function requestKey({ runId, data }: SluiceEvent): string {
  return `request ${runId} ${textAt(data, "requestId")}`;
}
