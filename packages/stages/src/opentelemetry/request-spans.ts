import type { Attributes } from "@opentelemetry/api";
import type { EventDraft } from "@sluice/core";
import { clean, spanName } from "./names.ts";
import type { OpenSpan } from "./open-span.ts";

/** Events that close a request, with the value of `sluice.request.answer` if the event has no answer. */
const ANSWERS: Partial<Record<EventDraft["type"], string>> = {
  "grant.answered": "answered",
  "grant.expired": "expired",
  "request.answered": "answered",
  "request.expired": "expired",
};

/** One span per request, until it is answered or expires. */
export class RequestSpans {
  readonly #shared: Attributes;
  /** By request id. */
  readonly #open = new Map<string, OpenSpan>();

  constructor(shared: Attributes) {
    this.#shared = shared;
  }

  recorded(event: EventDraft, parent: OpenSpan, at: number): void {
    const { type } = event;
    if (!type.startsWith("grant.") && !type.startsWith("request.")) return;
    const { data } = event;
    const { requestId } = data;
    if (typeof requestId !== "string") return;
    if (type === "grant.requested" || type === "request.opened") this.#openRequest(requestId, data, parent, at);
    const defaultAnswer = ANSWERS[type];
    if (defaultAnswer === undefined) return;
    const answer = typeof data.answer === "string" ? clean(data.answer) : defaultAnswer;
    const span = this.#open.get(requestId);
    this.#open.delete(requestId);
    // An earlier process opened the request and has ended its span.
    if (span === undefined) {
      parent.event(`sluice.${type}`, { "sluice.request.id": clean(requestId), "sluice.request.answer": answer }, at);
      return;
    }
    span.set({ "sluice.request.answer": answer });
    span.end(at);
    parent.reach(at);
  }

  close(at: number): void {
    for (const span of this.#open.values()) span.end(at);
    this.#open.clear();
  }

  #openRequest(requestId: string, { kind }: EventDraft["data"], parent: OpenSpan, at: number): void {
    const kindName = typeof kind === "string" ? kind : "";
    const attributes = {
      ...this.#shared,
      "sluice.request.id": clean(requestId),
      "sluice.request.kind": clean(kindName),
    };
    this.#open.set(requestId, parent.open({ name: spanName("request", kindName), attributes, at }));
  }
}
