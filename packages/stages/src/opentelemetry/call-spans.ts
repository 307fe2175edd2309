import type { Attributes } from "@opentelemetry/api";
import { type EventDraft, field } from "@sluice/core";
import type { Activity, ObservedToolCall } from "../telemetry/telemetry.ts";
import { clean, spanName, textIn } from "./names.ts";
import type { OpenSpan } from "./open-span.ts";

/** Outcomes that are errors, with their `error.type`. */
const ERRORS: Readonly<Record<string, string>> = {
  error: "tool_error",
  abandoned: "abandoned",
  outcome_unknown: "outcome_unknown",
};

interface OpenCall {
  readonly span: OpenSpan;
  readonly turn: OpenSpan;
  /** When the tool finished, which is recorded later. */
  workedUntil: number | undefined;
}

/** The tool calls of one attempt, one span each, whether executed, denied or recovered. */
export class CallSpans {
  readonly #shared: Attributes;
  readonly #turnOf: (callId: string, at: number) => OpenSpan;
  /** By call id. */
  readonly #open = new Map<string, OpenCall>();
  /** What approved a call that has not begun. */
  readonly #approvedBy = new Map<string, string>();

  constructor(shared: Attributes, turnOf: (callId: string, at: number) => OpenSpan) {
    this.#shared = shared;
    this.#turnOf = turnOf;
  }

  /** Opens the span of an approved call. */
  work({ callId, tool, at }: ObservedToolCall): Activity<undefined> {
    const call = this.#begin(callId, tool, at);
    return {
      within: (work) => call.span.within(work),
      ended: (_end, endedAt) => {
        call.workedUntil = endedAt;
      },
    };
  }

  /** Applies a call's recorded event. A denied call is not an error. */
  recorded(event: EventDraft, at: number): void {
    const { type } = event;
    if (!type.startsWith("call.")) return;
    const { data } = event;
    const { callId, tool } = data;
    if (typeof callId !== "string" || typeof tool !== "string") return;
    if (type === "call.started") this.#begin(callId, tool, at);
    if (type === "call.decided") this.#decided(callId, tool, data, at);
    if (type === "call.finished") this.#finished(this.#begin(callId, tool, at), data, at);
    if (type === "call.finished" || data.verdict === "refused") this.#open.delete(callId);
  }

  /** Ends the spans of unfinished calls, without an outcome. */
  close(at: number): void {
    for (const { span } of this.#open.values()) span.end(at);
    this.#open.clear();
    this.#approvedBy.clear();
  }

  #begin(callId: string, tool: string, at: number): OpenCall {
    const known = this.#open.get(callId);
    if (known !== undefined) return known;
    const by = this.#approvedBy.get(callId);
    this.#approvedBy.delete(callId);
    const turn = this.#turnOf(callId, at);
    const attributes = {
      ...this.#shared,
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": clean(tool),
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": clean(callId),
      ...(by === undefined ? {} : { "sluice.call.verdict": "approved", "sluice.call.approved_by": by }),
    };
    const span = turn.open({ name: spanName("execute_tool", tool), attributes, at });
    const call: OpenCall = { span, turn, workedUntil: undefined };
    this.#open.set(callId, call);
    return call;
  }

  #decided(callId: string, tool: string, data: EventDraft["data"], at: number): void {
    if (data.verdict === "approved") {
      if (typeof data.by === "string") this.#approvedBy.set(callId, data.by);
      return;
    }
    const { span, turn } = this.#begin(callId, tool, at);
    const cause = data.cause ?? field(data.result ?? null, "code");
    span.set({ "sluice.call.verdict": "refused", "sluice.call.cause": textIn(cause) });
    span.end(at);
    turn.reach(at);
  }

  #finished({ span, turn, workedUntil }: OpenCall, { outcome }: EventDraft["data"], at: number): void {
    const error = typeof outcome === "string" ? ERRORS[outcome] : undefined;
    span.set({ "sluice.call.outcome": textIn(outcome) });
    if (error !== undefined) span.fail(error);
    const until = workedUntil ?? at;
    span.end(until);
    turn.reach(until);
  }
}
