import { field, type SluiceEvent, type Usage } from "@sluice/core";
import { executionKey } from "../../projection/execution-reducer.ts";
import { numberAt, textAt, usageAt } from "../../words/fields.ts";

/** A stretch of time in which something went on. */
export interface Span {
  /** The execution it belongs to; absent for what concerns the run. */
  readonly key?: string;
  readonly kind: "model" | "tool" | "person" | "pause" | "suspended";
  readonly label: string;
  /** Epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** What one turn of an attempt came to. */
interface TurnFacts {
  readonly model: string;
  readonly from: number;
  readonly to?: number;
  readonly usage?: Usage;
  readonly tries: number;
}

export interface Times {
  readonly spans: readonly Span[];
  /** By `turnKey`. */
  readonly turns: ReadonlyMap<string, TurnFacts>;
  readonly end: number;
}

export function turnKey(execution: string, attempt: number, turn: number): string {
  return JSON.stringify([execution, attempt, turn]);
}

/** When models spoke, tools ran, people were waited for and nobody was at work, from the events of a tree of runs. */
export function timesOf(events: readonly SluiceEvent[], end: number): Times {
  const book = new TimeBook();
  for (const event of events) book.take(event);
  return book.finish(events.reduce((last, { at }) => Math.max(last, at), end));
}

type Open = Omit<Span, "to">;

class TimeBook {
  readonly #spans: Span[] = [];
  readonly #turns = new Map<string, TurnFacts>();
  /** What goes on now, by what ends it. */
  readonly #open = new Map<string, Open>();
  /** When the run itself last said something. */
  #last = 0;

  take(event: SluiceEvent): void {
    const { type, data, at, runId, executionId, attempt = 1 } = event;
    const key = executionKey(runId, executionId ?? "");
    const model = `model ${key}`;
    const before = this.#last;
    if (!runId.includes("/")) this.#last = at;
    switch (type) {
      case "turn.started":
        this.#close(model, at);
        this.#begin(model, { key, kind: "model", from: at, label: this.#turnBegins(event, key) });
        break;
      case "model.retried": {
        this.#close(model, at);
        const label = `waits before try ${numberAt(data, "try") + 1}`;
        this.#spans.push({ key, kind: "pause", from: at, to: at + numberAt(data, "waitMs"), label });
        break;
      }
      case "call.decided":
      case "completion.accepted":
      case "completion.rejected":
        this.#close(model, at);
        break;
      case "call.finished": {
        this.#close(model, at);
        const label = `${textAt(data, "tool")}: ${textAt(data, "outcome")}`;
        this.#spans.push({ key, kind: "tool", from: at - numberAt(data, "ms"), to: at, label });
        break;
      }
      case "turn.finished": {
        this.#close(model, at);
        const turn = turnKey(key, attempt, numberAt(data, "turn"));
        const known = this.#turns.get(turn) ?? { model: "", from: at, tries: 1 };
        this.#turns.set(turn, { ...known, to: at, usage: usageAt(data) });
        break;
      }
      case "grant.requested":
      case "request.opened": {
        this.#close(model, at);
        const about = textAt(field(data, "body"), "tool") || textAt(field(data, "body"), "question");
        const label = `a person is asked${about === "" ? "" : `: ${about}`}`;
        this.#begin(requestKey(event), { key, kind: "person", from: at, label });
        break;
      }
      case "grant.answered":
      case "grant.expired":
      case "request.answered":
      case "request.expired":
        this.#close(requestKey(event), at);
        break;
      case "run.suspended":
        this.#begin(`run ${runId}`, { kind: "suspended", from: at, label: "nobody was at work" });
        break;
      case "run.forked":
        this.#begin(`run ${runId}`, { kind: "suspended", from: before, label: "the past of another run ends here" });
        break;
      case "run.resumed":
        this.#close(`run ${runId}`, at);
        this.#cutModels(runId, at);
        break;
      case "attempt.finished":
      case "stage.exit":
        this.#close(model, at);
        break;
      case "run.finished":
        this.#cutModels(runId, at);
        this.#close(`run ${runId}`, at);
        break;
      default:
        break;
    }
  }

  finish(end: number): Times {
    for (const key of [...this.#open.keys()]) this.#close(key, end);
    return { spans: this.#spans, turns: this.#turns, end };
  }

  #turnBegins({ data, at, attempt = 1 }: SluiceEvent, key: string): string {
    const [turn, tries, model] = [numberAt(data, "turn"), numberAt(data, "try"), textAt(data, "model")];
    const place = turnKey(key, attempt, turn);
    this.#turns.set(place, { model, from: this.#turns.get(place)?.from ?? at, tries });
    return `turn ${turn}${tries > 1 ? `, try ${tries}` : ""}: ${model}`;
  }

  #begin(key: string, open: Open): void {
    this.#open.set(key, open);
  }

  #close(key: string, to: number): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#spans.push({ ...open, to: Math.max(open.from, to) });
  }

  /** A process that was killed ended nothing: what its model did after that is not known. */
  #cutModels(runId: string, at: number): void {
    for (const key of [...this.#open.keys()]) if (key.startsWith(`model ${runId}:`)) this.#close(key, at);
  }
}

function requestKey({ runId, data }: SluiceEvent): string {
  return `request ${runId} ${textAt(data, "requestId")}`;
}
