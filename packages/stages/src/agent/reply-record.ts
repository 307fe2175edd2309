import { field, type Issue, isJsonObject, type Json } from "@sluice/core";
import { isSameJson, type LimitHit, type SecretFilter } from "@sluice/core/runtime";
import { cleanWord, providerData, usageOf } from "../models/reply/provider-values.ts";
import type { AssistantPart, ModelReply, ModelToolCall } from "../models/reply/reply.ts";

// Replies are most of a journal, so nothing is recorded twice: texts and arguments of calls are read from the content.

type SuccessfulReply = Extract<ModelReply, { readonly ok: true }>;

/** A reply as the turn loop uses it. In a record, a call that has neither `input` nor `inputError` has its arguments in the content. */
export type Reply = Omit<SuccessfulReply, "ok" | "text" | "calls"> & {
  readonly calls: readonly TurnCall[];
  /** Characters of texts and arguments, for the size of the next prompt. */
  readonly chars: number;
};
/** A call with its arguments, or with its raw text if they are invalid. */
export type TurnCall = Omit<ModelToolCall, "rawInput"> & { readonly rawInput?: string };
/** Why an attempt had to end before a check did: by a cap, or else by a cancel. */
export type Stopped = { readonly hit?: LimitHit };
/** The validation of a completion call, by its position. */
export type CompletionCheck = { readonly index: number } & (
  | { readonly ok: true; readonly output: Json }
  | { readonly ok: false; readonly issues: readonly Issue[]; readonly stopped?: Stopped }
);

/** A valid completion without an output has it in the arguments of its call. */
export type CompletionCheckRecord = { readonly index: number } & (
  | { readonly ok: true; readonly output?: Json }
  | { readonly ok: false; readonly issues: readonly Issue[]; readonly stopped?: Stopped }
);

/** Whether one of these checks was stopped, by its record. */
export function wasStopped(checks: Json): boolean {
  return Array.isArray(checks) && checks.some((check: Json) => field(check, "stopped") !== undefined);
}

/** Whether all calls of a reply are to these tools. */
export function callsOnly({ calls }: Pick<Reply, "calls">, tools: ReadonlySet<string>): boolean {
  return calls.every(({ tool }) => tools.has(tool));
}

export function encodeReply(reply: SuccessfulReply): Reply {
  const { content, calls, text, finishReason, usage, warnings, rawFinishReason, response, providerMetadata } = reply;
  return {
    content,
    calls: calls.map(encodeCall),
    chars: calls.reduce((sum, call) => sum + call.rawInput.length, text.length),
    finishReason,
    usage,
    warnings,
    ...(rawFinishReason === undefined ? {} : { rawFinishReason }),
    ...(response === undefined ? {} : { response }),
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
  };
}

function encodeCall({ index, id, tool, wireName, input, rawInput, inputError }: ModelToolCall): TurnCall {
  return {
    index,
    id,
    tool,
    ...(wireName === undefined ? {} : { wireName }),
    ...(inputError === undefined ? {} : { inputError }),
    ...(input === undefined ? { rawInput } : isJsonObject(input) ? {} : { input }),
  };
}

export function decodeReply(record: Reply): Reply {
  // Each call has one part, in the same order; ids are not unique.
  const parts = record.content.filter(isOurCall);
  return { ...record, calls: record.calls.map((call, at) => decodeCall(call, parts[at])) };
}

function decodeCall(call: TurnCall, part: CallPart | undefined): TurnCall {
  if (call.input !== undefined || call.inputError !== undefined || part === undefined) return call;
  return { ...call, input: part.input };
}

type CallPart = Extract<AssistantPart, { readonly type: "tool-call" }>;

function isOurCall(part: AssistantPart): part is CallPart {
  return part.type === "tool-call" && part.providerExecuted !== true;
}

export function encodeChecks(
  checks: readonly CompletionCheck[],
  { calls }: Pick<Reply, "calls">,
): readonly CompletionCheckRecord[] {
  return checks.map((check) => {
    const input = check.ok ? calls.find(({ index }) => index === check.index)?.input : undefined;
    return check.ok && input !== undefined && isSameJson(check.output, input)
      ? { index: check.index, ok: true }
      : check;
  });
}

export function decodeChecks(checks: readonly CompletionCheckRecord[], { calls }: Reply): readonly CompletionCheck[] {
  return checks.map((check) => {
    if (!check.ok) return check;
    const { index, output } = check;
    return { index, ok: true, output: output ?? calls.find((call) => call.index === index)?.input ?? null };
  });
}

/** Masks known secrets in a reply before it is checked, recorded or sent again. */
export function maskReply(reply: SuccessfulReply, secrets: SecretFilter): SuccessfulReply {
  const escaped = reply.calls.some(({ input, rawInput }) => input === undefined && rawInput.includes("\\u"));
  if (!escaped && secrets.json(reply) === reply) return reply;
  const content = reply.content.flatMap((part) => cleanPart(part, secrets));
  const { text, calls, warnings, finishReason, usage, rawFinishReason: raw, response, providerMetadata: sent } = reply;
  const metadata = providerData(secrets.json(sent ?? {}));
  // Members are listed one by one, so that a new one is not recorded before it is masked here.
  return {
    ok: true,
    text: secrets.text(text),
    // Providers reject a message of custom parts only.
    content: content.some((part) => part.type !== "custom") ? content : [],
    calls: calls.map((call) => cleanCall(call, secrets)),
    finishReason,
    ...(raw === undefined ? {} : { rawFinishReason: secrets.text(raw) }),
    // A count could equal a secret of digits.
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
  // The signature covers the text, so providers would reject masked reasoning.
  if (part.type === "reasoning") return secrets.json(part) === part ? [part] : [];
  // Provider data may repeat the part: OpenAI's contains the arguments of merged calls.
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
      // Kind, media type and bytes would be useless after masking.
      return secrets.json(clean) === clean ? [clean] : [];
    }
  }
}

/** Masked ids and names must remain acceptable to providers. */
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
    // The parser's message quotes the arguments.
    ...(inputError === undefined || raw === rawInput
      ? {}
      : { inputError: { ...inputError, message: "the arguments could not be read" } }),
  };
}

/** In invalid arguments, an escaped secret is visible only after unescaping. */
function cleanRaw(raw: string, secrets: SecretFilter): string {
  const plain = raw.replaceAll(/\\u([0-9a-fA-F]{4})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const clean = secrets.text(plain);
  return clean === plain ? raw : clean;
}
