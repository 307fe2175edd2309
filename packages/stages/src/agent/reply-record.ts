import { field, type Issue, isJsonObject, type Json, type JsonObject, type SecretFilter } from "@sluice/core";
import { cleanWord, providerData, usageOf } from "../models/reply/provider-values.ts";
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

export type ReplyRecord = Omit<Reply, "calls"> & { readonly calls: readonly KeptCall[] };
/** Without arguments and without a fault: they stand in the content. */
type KeptCall = TurnCall;
/** Accepted without an output: it is the call's arguments as they stand. */
export type CompletionCheckRecord = { readonly index: number } & (
  | { readonly ok: true; readonly output?: Json }
  | { readonly ok: false; readonly issues: readonly Issue[] }
);

/** A reply as it is recorded. */
export function encodeReply(reply: Whole): ReplyRecord {
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

export function decodeReply(kept: ReplyRecord): Reply {
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
export function encodeChecks(
  checks: readonly CompletionCheck[],
  { calls }: Pick<Reply, "calls">,
): readonly CompletionCheckRecord[] {
  return checks.map((check) => {
    const input = check.ok ? calls.find(({ index }) => index === check.index)?.input : undefined;
    return check.ok && input !== undefined && sameJson(check.output, input) ? { index: check.index, ok: true } : check;
  });
}

export function decodeChecks(checks: readonly CompletionCheckRecord[], { calls }: Reply): readonly CompletionCheck[] {
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

/** Takes known secret values out of a reply, before it is digested, judged, recorded or sent again. */
export function maskReply(reply: Whole, secrets: SecretFilter): Whole {
  const escaped = reply.calls.some(({ input, rawInput }) => input === undefined && rawInput.includes("\\u"));
  if (!escaped && secrets.json(reply) === reply) return reply;
  const content = reply.content.flatMap((part) => cleanPart(part, secrets));
  const { text, calls, warnings, finishReason, usage, rawFinishReason: raw, response, providerMetadata: sent } = reply;
  const metadata = providerData(secrets.json(sent ?? {}));
  // Every member by its name: what comes into a reply later is not recorded before it is cleaned here.
  return {
    ok: true,
    text: secrets.text(text),
    // Notes of the provider without anything said would be an empty message to it.
    content: content.some((part) => part.type !== "custom") ? content : [],
    calls: calls.map((call) => cleanCall(call, secrets)),
    finishReason,
    ...(raw === undefined ? {} : { rawFinishReason: secrets.text(raw) }),
    // A secret of digits alone can be said as a count.
    usage: secrets.json(usage) === usage ? usage : NOT_COUNTED,
    warnings: warnings.map((warning) => secrets.text(warning)),
    ...(response === undefined ? {} : { response: cleanResponse(response, secrets) }),
    ...(metadata === undefined ? {} : { providerMetadata: metadata }),
  };
}

type Named = NonNullable<Reply["response"]>;
const NOT_COUNTED = usageOf(undefined);

function cleanResponse({ id, model }: Named, secrets: SecretFilter): Named {
  return {
    ...(id === undefined ? {} : { id: secrets.text(id) }),
    ...(model === undefined ? {} : { model: secrets.text(model) }),
  };
}

function cleanPart(part: AssistantPart, secrets: SecretFilter): readonly AssistantPart[] {
  // Its signature covers the text: a changed one would be refused, so it is left out.
  if (part.type === "reasoning") return secrets.json(part) === part ? [part] : [];
  // Providers repeat there what a part says: OpenAI the arguments of calls that came as one.
  const options = providerData(secrets.json(part.providerOptions ?? {}));
  const data = options === undefined ? {} : { providerOptions: options };
  switch (part.type) {
    case "text":
      return [{ ...part, text: secrets.text(part.text), ...data }];
    case "tool-call":
      return [{ ...part, ...cleanNames(part, secrets), input: secrets.json(part.input), ...data }];
    case "tool-result": {
      const { output } = part;
      const clean =
        output.type === "text"
          ? { type: output.type, value: secrets.text(output.value) }
          : { type: output.type, value: secrets.json(output.value) };
      return [{ ...part, ...cleanNames(part, secrets), output: clean, ...data }];
    }
    case "custom":
    case "file":
    case "reasoning-file": {
      const clean = { ...part, ...data };
      // Its kind, its media type and its bytes mean something as they are, or nothing.
      return secrets.json(clean) === clean ? [clean] : [];
    }
  }
}

/** Ids and names have to stay such that providers accept them in a transcript. */
function cleanNames(part: { readonly toolCallId: string; readonly toolName: string }, secrets: SecretFilter) {
  return { toolCallId: cleanWord(part.toolCallId, secrets), toolName: cleanWord(part.toolName, secrets) };
}

function cleanCall(call: ModelToolCall, secrets: SecretFilter): ModelToolCall {
  const { id, tool, wireName, input, rawInput, inputError } = call;
  const cleanTool = secrets.text(tool);
  const cleanWire = cleanWord(wireName ?? tool, secrets);
  const raw = cleanRaw(rawInput, secrets);
  return {
    ...call,
    id: cleanWord(id, secrets),
    tool: cleanTool,
    ...(cleanWire === cleanTool ? {} : { wireName: cleanWire }),
    ...(input === undefined ? {} : { input: secrets.json(input) }),
    rawInput: raw,
    // What a parser says of a text quotes from it.
    ...(inputError === undefined || raw === rawInput
      ? {}
      : { inputError: { ...inputError, message: "the arguments could not be read" } }),
  };
}

/** Arguments that cannot be read may hold a secret in escapes, where only their plain text shows it. */
function cleanRaw(raw: string, secrets: SecretFilter): string {
  const plain = raw.replaceAll(/\\u([0-9a-fA-F]{4})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const clean = secrets.text(plain);
  return clean === plain ? raw : clean;
}
