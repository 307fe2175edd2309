import { field, type Issue, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import type { AssistantPart, ModelReply, ModelToolCall } from "../models/reply/reply.ts";

// What a model step records is most of a journal. So it says everything once: the content holds the texts and the arguments
// of calls, and what stands there is read from there.

type Whole = Extract<ModelReply, { readonly ok: true }>;

/** A reply as the turn loop uses it. */
export type Reply = Omit<Whole, "ok" | "text" | "calls"> & {
  readonly calls: readonly TurnCall[];
  /** Characters of texts and arguments, as they count towards the next prompt. */
  readonly chars: number;
};
/** A call with its arguments; what was sent is known only where it could not be read. */
export type TurnCall = Omit<ModelToolCall, "rawInput"> & { readonly rawInput?: string };
/** How a completion call reads, by position. */
export type CompletionCheck = { readonly index: number } & (
  | { readonly ok: true; readonly output: Json }
  | { readonly ok: false; readonly issues: readonly Issue[] }
);

export type KeptReply = Omit<Reply, "calls"> & { readonly calls: readonly KeptCall[] };
/** Without arguments and without a fault: they stand in the content. */
type KeptCall = TurnCall;
/** Accepted without an output: it is the call's arguments as they stand. */
export type KeptCheck = { readonly index: number } & (
  | { readonly ok: true; readonly output?: Json }
  | { readonly ok: false; readonly issues: readonly Issue[] }
);

/** A reply as it is recorded. */
export function keepReply(reply: Whole): KeptReply {
  const { content, calls, text, finishReason, usage, warnings, rawFinishReason, response, providerMetadata } = reply;
  return {
    content,
    calls: calls.map(keepCall),
    chars: calls.reduce((sum, call) => sum + call.rawInput.length, text.length),
    finishReason,
    usage,
    warnings,
    ...(rawFinishReason === undefined ? {} : { rawFinishReason }),
    ...(response === undefined ? {} : { response }),
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
  };
}

function keepCall({ index, id, tool, wireName, input, rawInput, inputError }: ModelToolCall): KeptCall {
  return {
    index,
    id,
    tool,
    ...(wireName === undefined ? {} : { wireName }),
    ...(inputError === undefined ? {} : { inputError }),
    ...(input === undefined ? { rawInput } : isJsonObject(input) ? {} : { input }),
  };
}

export function readReply(kept: KeptReply): Reply {
  // One part for each call, in the same order, whatever ids a provider gave them.
  const parts = kept.content.filter(isOurCall);
  return { ...kept, calls: kept.calls.map((call, at) => readCall(call, parts[at])) };
}

function readCall(call: KeptCall, part: CallPart | undefined): TurnCall {
  if (call.input !== undefined || call.inputError !== undefined || part === undefined) return call;
  return { ...call, input: part.input };
}

type CallPart = Extract<AssistantPart, { readonly type: "tool-call" }>;

function isOurCall(part: AssistantPart): part is CallPart {
  return part.type === "tool-call" && part.providerExecuted !== true;
}

/** The checks of a reply as they are recorded beside it. */
export function keepChecks(checks: readonly CompletionCheck[], { calls }: Pick<Reply, "calls">): readonly KeptCheck[] {
  return checks.map((check) => {
    const input = check.ok ? calls.find(({ index }) => index === check.index)?.input : undefined;
    return check.ok && input !== undefined && sameJson(check.output, input) ? { index: check.index, ok: true } : check;
  });
}

export function readChecks(checks: readonly KeptCheck[], { calls }: Reply): readonly CompletionCheck[] {
  return checks.map((check) => {
    if (!check.ok) return check;
    const { index, output } = check;
    return { index, ok: true, output: output ?? calls.find((call) => call.index === index)?.input ?? null };
  });
}

/** Whether two values are the same JSON, whatever the order of their members. */
function sameJson(a: Json, b: Json): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (isJsonObject(a)) return isJsonObject(b) && sameMembers(a, b);
  return !isJsonObject(b) && a.length === b.length && a.every((item, at) => sameJson(item, b[at] ?? null));
}

function sameMembers(a: JsonObject, b: JsonObject): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => {
    const left = field(a, key);
    const right = field(b, key);
    return left !== undefined && right !== undefined && sameJson(left, right);
  });
}
