import { field, type SluiceEvent } from "@sluice/core";
import { numberAt, textAt } from "../words/fields.ts";
import { type AppendOnlyList, ListBuilder } from "./append-only-list.ts";
import { executionKey } from "./execution-reducer.ts";
import type { TimeSpan } from "./run-view.ts";

/** When models streamed, tools ran, requests were open and no process executed the run. */
export class TimeReducer {
  readonly #spans = new ListBuilder<TimeSpan>();
  /** Indexes of spans without an end. */
  readonly #open = new Map<string, number>();
  #lastRootEvent = 0;

  event(event: SluiceEvent): void {
    const { type, data, at, runId, executionId = "" } = event;
    const key = executionKey(runId, executionId);
    // A run calls one model at a time.
    const model = `model ${runId}`;
    const before = this.#lastRootEvent;
    if (!runId.includes("/")) this.#lastRootEvent = at;
    if (ENDS_MODEL.has(type)) this.#close(model, at);
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
      case "run.suspended":
        this.#begin(`run ${runId}`, { kind: "suspended", from: at, label: "suspended" });
        break;
      case "run.forked":
        this.#begin(`run ${runId}`, { kind: "suspended", from: before, label: "forked here from another run" });
        break;
      case "run.resumed":
      case "run.finished":
        this.#close(`run ${runId}`, at);
        // A killed process records no end of its model calls.
        this.#close(model, at);
        break;
      default:
        break;
    }
    this.#spans.settle(({ to }) => to !== undefined);
  }

  view(): AppendOnlyList<TimeSpan> {
    return this.#spans.view();
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

const ENDS_MODEL: ReadonlySet<string> = new Set<SluiceEvent["type"]>([
  "turn.started",
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
