import type { Attributes } from "@opentelemetry/api";
import type { EventDraft } from "@sluice/core";
import { clean, spanName } from "./names.ts";
import type { OpenSpan } from "./open-span.ts";

/** Events that close a request, and what is said of its answer where it had none. */
const ANSWERS: Partial<Record<EventDraft["type"], string>> = {
  "grant.answered": "answered",
  "grant.expired": "expired",
  "request.answered": "answered",
  "request.expired": "expired",
};

/** Requests to people: a span each, from the question to its answer. */
export class RequestSpans {
  readonly #shared: Attributes;
  /** By request id. */
  readonly #open = new Map<string, OpenSpan>();

  constructor(shared: Attributes) {
    this.#shared = shared;
  }

  /** `below` is the span of whoever asks. */
  recorded(event: EventDraft, below: OpenSpan, at: number): void {
    const { type } = event;
    if (!type.startsWith("grant.") && !type.startsWith("request.")) return;
    const { data } = event;
    const { requestId } = data;
    if (typeof requestId !== "string") return;
    if (type === "grant.requested" || type === "request.opened") this.#asked(requestId, data, below, at);
    const answer = ANSWERS[type];
    if (answer === undefined) return;
    const said = typeof data.answer === "string" ? clean(data.answer) : answer;
    const asked = this.#open.get(requestId);
    this.#open.delete(requestId);
    // Opened by an earlier process, whose span it was.
    if (asked === undefined) {
      below.event(`sluice.${type}`, { "sluice.request.id": clean(requestId), "sluice.request.answer": said }, at);
      return;
    }
    asked.set("sluice.request.answer", said);
    asked.end(at);
    below.reach(at);
  }

  close(at: number): void {
    for (const span of this.#open.values()) span.end(at);
    this.#open.clear();
  }

  #asked(requestId: string, { kind }: EventDraft["data"], below: OpenSpan, at: number): void {
    const named = typeof kind === "string" ? kind : "";
    const attributes = {
      ...this.#shared,
      "sluice.request.id": clean(requestId),
      "sluice.request.kind": clean(named),
    };
    this.#open.set(requestId, below.open({ name: spanName("request", named), attributes, at }));
  }
}
