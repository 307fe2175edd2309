import { isDeepStrictEqual } from "node:util";
import { field, isJsonObject, type Json, type SluiceEvent } from "@sluice/core";
import { parseAttemptStep, parseRequestId } from "@sluice/core/runtime";
import type { TranscriptEntry } from "@sluice/stages";
import { issuesIn, numberAt, textAt } from "../words/fields.ts";
import type { ListBuilder } from "./append-only-list.ts";
import type { CallView, TranscriptItem } from "./run-view.ts";

type Entry<K> = Extract<TranscriptEntry, { readonly kind: K }>;
type Change = Partial<Omit<CallView, "kind" | "attempt" | "callId">>;

/** The tool calls of one execution, from its transcript and events. */
export class CallReducer {
  readonly #items: ListBuilder<TranscriptItem>;
  /** Indexes of calls that can still change, by attempt and id. */
  readonly #open = new Map<string, number>();
  /** Whether the result in the transcript is ok, for calls that no event has finished. */
  readonly #results = new Map<string, boolean>();
  readonly #requested = new Map<string, string>();

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
    this.#results.set(key, ok);
  }

  /** The call on one line, while it is not final. */
  summaryOf(attempt: number, callId: string): string | undefined {
    return this.#callAt(keyOf(attempt, callId))?.summary;
  }

  event({ type, data, attempt = 1 }: SluiceEvent): void {
    const callId = textAt(data, "callId");
    switch (type) {
      case "call.decided":
        this.#change(attempt, callId, decided(data));
        break;
      case "call.started":
        this.#change(attempt, callId, { tool: textAt(data, "tool"), state: "running" });
        break;
      case "call.finished":
        this.#change(attempt, callId, finished(data));
        break;
      case "grant.requested": {
        const body = field(data, "body");
        const id = textAt(body, "proposalId");
        this.#requested.set(textAt(data, "requestId"), keyOf(attempt, id));
        const [tool, summary, why] = [textAt(body, "tool"), textAt(body, "argsSummary"), textAt(body, "why")];
        this.#change(attempt, id, { tool, state: "asking", why, ...(summary === "" ? {} : { summary }) });
        break;
      }
      case "request.opened": {
        const requestId = textAt(data, "requestId");
        const request = parseRequestId(requestId);
        if (request === undefined) this.#asked(requestId, field(data, "body"));
        if (request?.isQuestion !== true) break;
        const id = request.callId;
        this.#requested.set(requestId, keyOf(attempt, id));
        this.#change(attempt, id, { state: "asking", why: textAt(field(data, "body"), "question") });
        break;
      }
      case "grant.answered":
        this.#answered(textAt(data, "requestId"), "proposed", approverIn(data));
        break;
      case "request.answered":
        this.#answered(textAt(data, "requestId"), "running");
        break;
      case "grant.expired":
      case "request.expired":
        this.#answered(textAt(data, "requestId"), "proposed");
        break;
      default:
        break;
    }
  }

  /** Call after each record: a call with a result that no event contradicts is final. */
  afterRecord(): void {
    for (const [key, ok] of this.#results) {
      const item = this.#callAt(key);
      if (item !== undefined && !isFinal(item)) this.#put(key, withResult(item, ok));
    }
    this.#results.clear();
    for (const [key, index] of this.#open) {
      const item = this.#items.at(index);
      if (item === undefined || isFinal(item)) this.#open.delete(key);
    }
  }

  /** Abandons the open calls of turns before this one: they never ran. */
  endTurns(attempt: number, turn: number, why: string): void {
    for (const key of this.#open.keys()) {
      const item = this.#callAt(key);
      const isEarlier =
        item !== undefined && (item.attempt < attempt || (item.attempt === attempt && item.turn < turn));
      if (isEarlier && !isFinal(item) && !this.#results.has(key)) this.#put(key, { ...item, state: "abandoned", why });
    }
  }

  /** A person is asked about the event of a call, whose turn has ended already. */
  #asked(requestId: string, body: Json | undefined): void {
    const step = parseAttemptStep(requestId);
    if (step?.kind !== "accept") return;
    const { attempt, turn } = step;
    const event = textAt(body, "event");
    for (const key of this.#open.keys()) {
      const item = this.#callAt(key);
      if (item?.attempt !== attempt || item.turn !== turn || textAt(item.input, "event") !== event) continue;
      if (item.state !== "abandoned" && item.state !== "proposed") continue;
      this.#requested.set(requestId, key);
      this.#put(key, { ...item, state: "asking", why: textAt(body, "message") });
      return;
    }
  }

  #answered(requestId: string, state: "running" | "proposed", approvedBy?: string): void {
    const key = this.#requested.get(requestId);
    const item = key === undefined ? undefined : this.#callAt(key);
    this.#requested.delete(requestId);
    if (key === undefined || item?.state !== "asking") return;
    const { why: _why, ...rest } = item;
    this.#put(key, { ...rest, state, ...(approvedBy === undefined ? {} : { approvedBy }) });
  }

  #change(attempt: number, callId: string, change: Change): void {
    const key = keyOf(attempt, callId);
    const known = this.#callAt(key);
    if (known !== undefined) this.#put(key, { ...known, ...change });
    else {
      // Custom executors write no transcript; their calls are known from events only.
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

/** Whether an item can no longer change. */
export function isFinal(item: TranscriptItem): boolean {
  if (item.kind === "command") return item.state !== "running" && item.state !== "ended";
  return item.kind !== "call" || (item.state !== "proposed" && item.state !== "asking" && item.state !== "running");
}

/** Completions and calls that the provider executes have a result but no `call.finished`. */
function withResult(call: CallView, ok: boolean): CallView {
  const { output, ...rest } = call;
  if (!ok) {
    const why = issuesIn(output) || textAt(output, "reason");
    return { ...call, state: "error", ...(why === "" ? {} : { why }) };
  }
  // A completion's output usually repeats its input.
  return isDeepStrictEqual(output, call.input) ? { ...rest, state: "ok" } : { ...call, state: "ok" };
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
  const common = { tool: textAt(data, "tool"), ms: numberAt(data, "ms"), ...(isJsonObject(facts) ? { facts } : {}) };
  const outcome = textAt(data, "outcome");
  switch (outcome) {
    case "ok":
    case "abandoned":
    case "outcome_unknown":
      return { ...common, state: outcome };
    case "recovered":
      return { ...common, state: "ok", why: "it had taken effect before the process stopped" };
    default:
      return { ...common, state: "error" };
  }
}

function keyOf(attempt: number, callId: string): string {
  return JSON.stringify([attempt, callId]);
}
