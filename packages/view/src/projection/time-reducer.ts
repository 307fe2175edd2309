import { field, type Json, type SluiceEvent } from "@sluice/core";
import { parseSiblingId } from "@sluice/core/runtime";
import { numberAt, textAt } from "../words/fields.ts";
import { moment } from "../words/words.ts";
import { type AppendOnlyList, ListBuilder } from "./append-only-list.ts";
import { executionKey } from "./execution-reducer.ts";
import type { TimeSpan } from "./run-view.ts";

/** When models streamed, tools ran, states slept, requests were open and no process executed the run. */
export class TimeReducer {
  readonly #spans = new ListBuilder<TimeSpan>();
  readonly #rests = new Rests();
  readonly #last = new LastEvents();
  /** Indexes of spans without an end. */
  readonly #open = new Map<string, number>();

  event(event: SluiceEvent): void {
    const { type, data, at, runId, executionId = "" } = event;
    const key = executionKey(runId, executionId);
    // A run calls one model at a time.
    const model = `model ${runId}`;
    const before = this.#last.of(runId) ?? at;
    this.#last.add(runId, at);
    if (executionId !== "") this.#rests.executed(runId, key);
    // A killed process records no end of its model calls, whose time is known up to the record before.
    if (AFTER_KILL.has(type)) this.#close(model, before);
    else if (ENDS_MODEL.has(type)) this.#close(model, at);
    switch (type) {
      case "turn.started": {
        const tries = numberAt(data, "try");
        const label = `turn ${numberAt(data, "turn")}${tries > 1 ? `, try ${tries}` : ""}: ${textAt(data, "model")}`;
        this.#begin(model, { key, kind: "model", from: at, label });
        break;
      }
      case "model.retried": {
        const label = `waiting before try ${numberAt(data, "try") + 1}`;
        this.#spans.push({ key, kind: "pause", from: at, to: at + numberAt(data, "waitMs"), label });
        break;
      }
      case "call.finished": {
        const label = `${textAt(data, "tool")}: ${textAt(data, "outcome")}`;
        this.#spans.push({ key, kind: "tool", from: at - numberAt(data, "ms"), to: at, label });
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
      case "run.suspended":
        this.#runRests(runId, { kind: "suspended", from: at, label: "suspended" });
        break;
      case "run.forked":
        this.#runRests(runId, { kind: "suspended", from: before, label: "forked here from another run" });
        break;
      case "run.resumed": {
        const last = this.#last.before(at);
        if (!this.#open.has(`run ${runId}`) && last < at)
          this.#runRests(runId, { kind: "unknown", from: last, label: "not recorded: a process ended" });
        this.#runWorks(runId, at);
        break;
      }
      case "run.started":
        this.#rests.runStarted(runId, at);
        break;
      case "run.finished":
        this.#runWorks(runId, at);
        this.#rests.runEnded(runId, at);
        // A run that is cancelled from outside records no end of its sleeps.
        for (const open of [...this.#open.keys()]) if (open.startsWith(`sleep ${runId}:`)) this.#close(open, at);
        break;
      default:
        break;
    }
    this.#spans.settle(({ to }) => to !== undefined);
  }

  view(): AppendOnlyList<TimeSpan> {
    return this.#spans.view();
  }

  /** How long an execution did not work, and since when it does not. */
  restOf(key: string, from: number, to: number | undefined): Rest {
    return this.#rests.of(key, from, to);
  }

  #runRests(runId: string, span: TimeSpan): void {
    this.#begin(`run ${runId}`, span);
    this.#rests.began("", span.from);
  }

  #runWorks(runId: string, at: number): void {
    this.#close(`run ${runId}`, at);
    if (!runId.includes("/")) this.#rests.ended("", at);
  }

  #begin(key: string, span: TimeSpan): void {
    this.#close(key, span.from);
    this.#open.set(key, this.#spans.length);
    this.#spans.push(span);
  }

  #close(key: string, to: number): void {
    const index = this.#open.get(key);
    if (index === undefined) return;
    this.#open.delete(key);
    const span = this.#spans.at(index);
    if (span !== undefined) this.#spans.replace(index, { ...span, to: Math.max(span.from, to) });
  }
}

/** How long something rested, in milliseconds, without the time since the start of a rest that lasts. */
interface Rest {
  readonly restMs: number;
  readonly restingSince?: number;
}

interface RestSpan {
  readonly from: number;
  to: number;
}

/** A run that an execution started itself. */
interface OwnRun {
  readonly runId: string;
  readonly from: number;
  to: number;
  /** Its executions. */
  readonly keys: Set<string>;
}

/** The times in which executions slept or waited for runs that slept, and in which no process executed the run. */
class Rests {
  /** By execution; those of the run have the key ''. */
  readonly #spans = new Map<string, RestSpan[]>();
  /** By the execution that started them. */
  readonly #ownRuns = new Map<string, OwnRun[]>();
  readonly #runs = new Map<string, OwnRun>();

  began(key: string, from: number): void {
    const spans = this.#spans.get(key) ?? [];
    this.#spans.set(key, spans);
    this.ended(key, from);
    spans.push({ from, to: Number.POSITIVE_INFINITY });
  }

  ended(key: string, to: number): void {
    const last = this.#spans.get(key)?.at(-1);
    if (last?.to === Number.POSITIVE_INFINITY) last.to = Math.max(last.from, to);
  }

  /** A run below another one: of a fan-out, or of an execution that runs pipelines itself. */
  runStarted(runId: string, from: number): void {
    const parent = ownerOf(runId);
    if (parent === undefined) return;
    const run: OwnRun = { runId, from, to: Number.POSITIVE_INFINITY, keys: new Set() };
    this.#runs.set(runId, run);
    const runs = this.#ownRuns.get(parent);
    if (runs === undefined) this.#ownRuns.set(parent, [run]);
    else runs.push(run);
  }

  runEnded(runId: string, to: number): void {
    const run = this.#runs.get(runId);
    if (run !== undefined) run.to = to;
  }

  executed(runId: string, key: string): void {
    this.#runs.get(runId)?.keys.add(key);
  }

  /** Between two times; `to` is undefined if the second is still to come. */
  of(key: string, from: number, to = Number.POSITIVE_INFINITY): Rest {
    const spans = merged([...(this.#spans.get("") ?? []), ...this.#restsOf(key)]);
    let restMs = 0;
    for (const span of spans) {
      const [begin, end] = [Math.max(from, span.from), Math.min(to, span.to)];
      if (end === Number.POSITIVE_INFINITY) return { restMs, restingSince: begin };
      restMs += Math.max(0, end - begin);
    }
    return { restMs };
  }

  /** Its own sleeps, and the times in which all runs that it started rested. */
  #restsOf(key: string): readonly RestSpan[] {
    const own = this.#spans.get(key) ?? [];
    const runs = this.#ownRuns.get(key);
    if (runs === undefined) return own;
    const last = Math.max(...runs.map(({ to }) => to));
    // Its owner does not wait for a run that has ended.
    const rested = runs.map((run) =>
      merged([...[...run.keys].flatMap((each) => this.#restsOf(each)), { from: run.to, to: last }]),
    );
    return [...own, ...rested.reduce(common)];
  }
}

/** The execution that started a run itself; undefined for the runs of a fan-out and for the root. */
export function ownerOf(runId: string): string | undefined {
  const { parentId, fanOut = "" } = parseSiblingId(runId) ?? {};
  const [, executionId] = /^(.+):a\d+:/s.exec(fanOut) ?? [];
  return parentId === undefined || executionId === undefined ? undefined : executionKey(parentId, executionId);
}

/** The same times in order, without overlaps. */
function merged(spans: readonly RestSpan[]): readonly RestSpan[] {
  const all: RestSpan[] = [];
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (to <= from) continue;
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else all.push({ from, to });
  }
  return all;
}

/** The times that are in both of two merged lists. */
function common(some: readonly RestSpan[], others: readonly RestSpan[]): readonly RestSpan[] {
  return some.flatMap((one) =>
    others.flatMap((other) => {
      const [from, to] = [Math.max(one.from, other.from), Math.min(one.to, other.to)];
      return from < to ? [{ from, to }] : [];
    }),
  );
}

/** The times of the events of each run. A child's come before those of its parent that happened earlier. */
class LastEvents {
  readonly #times = new Map<string, number[]>();

  add(runId: string, at: number): void {
    const times = this.#times.get(runId);
    if (times === undefined) this.#times.set(runId, [at]);
    else if (at > (times.at(-1) ?? 0)) times.push(at);
  }

  of(runId: string): number | undefined {
    return this.#times.get(runId)?.at(-1);
  }

  /** The time of the last event of any run before a time; that time itself if there is none. */
  before(at: number): number {
    let last: number | undefined;
    for (const times of this.#times.values()) {
      let [low, high] = [0, times.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((times[middle] ?? at) < at) low = middle + 1;
        else high = middle;
      }
      const time = times[low - 1];
      if (time !== undefined && (last === undefined || time > last)) last = time;
    }
    return last ?? at;
  }
}

function sleepLabel(data: Json): string {
  const until = field(data, "until");
  return typeof until === "number" ? `asleep until ${moment(until)}` : "asleep";
}

const AFTER_KILL: ReadonlySet<string> = new Set<SluiceEvent["type"]>(["turn.started", "run.resumed", "run.finished"]);

const ENDS_MODEL: ReadonlySet<string> = new Set<SluiceEvent["type"]>([
  "model.retried",
  "call.decided",
  "completion.accepted",
  "completion.rejected",
  "call.finished",
  "turn.finished",
  "grant.requested",
  "request.opened",
  "attempt.finished",
  "stage.exit",
]);

function requestKey({ runId, data }: SluiceEvent): string {
  return `request ${runId} ${textAt(data, "requestId")}`;
}
