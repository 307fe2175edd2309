import { isDeepStrictEqual } from "node:util";
import { field, type Json, parseRequestId, type SluiceEvent } from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";
import { numberAt, textAt } from "../words/fields.ts";
import type { ListBuilder } from "./append-only-list.ts";
import type { CallView, TranscriptItem } from "./run-view.ts";

type Entry<K> = Extract<TranscriptEntry, { readonly kind: K }>;
type Change = Partial<Omit<CallView, "kind" | "attempt" | "callId">>;

/** The calls of one execution: what was asked for, from the transcript, and what came of it, from transcript and events. */
export class CallReducer {
  readonly #items: ListBuilder<TranscriptItem>;
  /** Where calls stand that can still change, by attempt and id. */
  readonly #open = new Map<string, number>();
  /** Whether the model read a result without a fault, of calls that no event has ended yet. */
  readonly #read = new Map<string, boolean>();
  /** The call that a request is about. */
  readonly #asked = new Map<string, string>();

  constructor(items: ListBuilder<TranscriptItem>) {
    this.#items = items;
  }

  proposed({ attempt, turn, callId, tool, input }: Entry<"call">): void {
    this.#change(attempt, callId, { turn, tool, input });
  }

  result({ attempt, callId, ok, output }: Entry<"result">): void {
    const key = keyOf(attempt, callId);
    if (!this.#open.has(key)) return;
    this.#change(attempt, callId, { output });
    this.#read.set(key, ok);
  }

  /** Takes what an event says of a call. Whether it said anything. */
  event({ type, data, attempt = 1 }: SluiceEvent): boolean {
    const callId = textAt(data, "callId");
    switch (type) {
      case "call.decided":
        this.#change(attempt, callId, decided(data));
        return true;
      case "call.started":
        this.#change(attempt, callId, { tool: textAt(data, "tool"), state: "running" });
        return true;
      case "call.finished":
        this.#change(attempt, callId, finished(data));
        return true;
      case "grant.requested": {
        const body = field(data, "body");
        const id = textAt(body, "proposalId");
        this.#asked.set(textAt(data, "requestId"), keyOf(attempt, id));
        const [tool, summary, why] = [textAt(body, "tool"), textAt(body, "argsSummary"), textAt(body, "why")];
        this.#change(attempt, id, { tool, state: "asking", why, ...(summary === "" ? {} : { summary }) });
        return true;
      }
      case "request.opened": {
        const requestId = textAt(data, "requestId");
        const request = parseRequestId(requestId);
        if (request?.isQuestion !== true) return false;
        const id = request.callId;
        this.#asked.set(requestId, keyOf(attempt, id));
        this.#change(attempt, id, { state: "asking", why: textAt(field(data, "body"), "question") });
        return true;
      }
      case "grant.answered":
        return this.#answered(textAt(data, "requestId"), "proposed", approverIn(data));
      case "request.answered":
        return this.#answered(textAt(data, "requestId"), "running");
      case "grant.expired":
      case "request.expired":
        return this.#answered(textAt(data, "requestId"), "proposed");
      default:
        return false;
    }
  }

  /** A record was read whole: what has its result and is not told otherwise by an event is over. */
  afterRecord(): void {
    for (const [key, ok] of this.#read) {
      const item = this.#callAt(key);
      if (item !== undefined && !isFinal(item)) this.#put(key, readAs(item, ok));
    }
    this.#read.clear();
    for (const [key, index] of this.#open) {
      const item = this.#items.at(index);
      if (item === undefined || isFinal(item)) this.#open.delete(key);
    }
  }

  /** The turns before this place are over: what of them is still open was never run. */
  endTurns(attempt: number, turn: number, why: string): void {
    for (const key of this.#open.keys()) {
      const item = this.#callAt(key);
      const before = item !== undefined && (item.attempt < attempt || (item.attempt === attempt && item.turn < turn));
      if (before && !isFinal(item) && !this.#read.has(key)) this.#put(key, { ...item, state: "abandoned", why });
    }
  }

  #answered(requestId: string, state: "running" | "proposed", approvedBy?: string): boolean {
    const key = this.#asked.get(requestId);
    const item = key === undefined ? undefined : this.#callAt(key);
    this.#asked.delete(requestId);
    if (key === undefined || item?.state !== "asking") return false;
    const { why: _why, ...rest } = item;
    this.#put(key, { ...rest, state, ...(approvedBy === undefined ? {} : { approvedBy }) });
    return true;
  }

  #change(attempt: number, callId: string, change: Change): void {
    const key = keyOf(attempt, callId);
    const known = this.#callAt(key);
    if (known !== undefined) this.#put(key, { ...known, ...change });
    else {
      // Executors of kinds of one's own leave no transcript: then a call is known by its events alone.
      this.#open.set(key, this.#items.length);
      const turn = Number(/^t(\d{1,9})\./.exec(callId)?.[1] ?? 0);
      this.#items.push({
        kind: "call",
        attempt,
        turn,
        callId,
        tool: "",
        input: undefined,
        state: "proposed",
        ...change,
      });
    }
  }

  #callAt(key: string): CallView | undefined {
    const index = this.#open.get(key);
    const item = index === undefined ? undefined : this.#items.at(index);
    return item?.kind === "call" ? item : undefined;
  }

  #put(key: string, call: CallView): void {
    const index = this.#open.get(key);
    if (index !== undefined) this.#items.replace(index, call);
  }
}

/** Whether an item will stay as it is. */
export function isFinal(item: TranscriptItem): boolean {
  return item.kind !== "call" || (item.state !== "proposed" && item.state !== "asking" && item.state !== "running");
}

/** A call that no event ends is a completion, or one that the provider ran itself: its result is all there is. */
function readAs(call: CallView, ok: boolean): CallView {
  const { output, ...rest } = call;
  if (!ok) {
    const why = issuesOf(output);
    return { ...call, state: "error", ...(why === "" ? {} : { why }) };
  }
  // What left the stage is mostly what was handed in.
  return isDeepStrictEqual(output, call.input) ? { ...rest, state: "ok" } : { ...call, state: "ok" };
}

function issuesOf(output: Json | undefined): string {
  const issues = field(output, "issues");
  if (!Array.isArray(issues)) return "";
  return issues.map((issue: Json) => `${textAt(issue, "path")}: ${textAt(issue, "message")}`).join("; ");
}

function approverIn(data: Json): string | undefined {
  return textAt(data, "answer") === "approve" ? textAt(data, "by") : undefined;
}

function decided(data: Json): Change {
  const result = field(data, "result");
  const tool = textAt(data, "tool");
  const args = textAt(data, "args");
  const summary = args === "" ? {} : { summary: args };
  if (textAt(data, "verdict") !== "refused") return { tool, state: "running", ...summary };
  const reason = textAt(result, "reason") || textAt(result, "message");
  const cause = textAt(data, "cause") || textAt(result, "code");
  const why = reason === "" ? cause : reason.startsWith(cause) ? reason : `${reason} (${cause})`;
  return { tool, state: "refused", why, ...summary };
}

function finished(data: Json): Change {
  const facts = field(data, "facts");
  const common = { tool: textAt(data, "tool"), ms: numberAt(data, "ms"), ...(isFacts(facts) ? { facts } : {}) };
  switch (textAt(data, "outcome")) {
    case "ok":
      return { ...common, state: "ok" };
    case "recovered":
      return { ...common, state: "ok", why: "it had taken effect before the process was stopped" };
    case "abandoned":
      return { ...common, state: "abandoned" };
    case "outcome_unknown":
      return { ...common, state: "outcome_unknown" };
    default:
      return { ...common, state: "error" };
  }
}

function isFacts(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function keyOf(attempt: number, callId: string): string {
  return JSON.stringify([attempt, callId]);
}
