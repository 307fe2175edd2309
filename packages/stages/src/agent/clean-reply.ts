import type { SecretFilter } from "@sluice/core";
import { usageOf } from "../models/providers/facts.ts";
import { providerData } from "../models/providers/json.ts";
import { cleanWord } from "../models/reply/cut-text.ts";
import type { AssistantPart, ModelReply, ModelToolCall } from "../models/reply/reply.ts";

type Reply = Extract<ModelReply, { readonly ok: true }>;

/** Takes known secret values out of a reply, before it is digested, judged, recorded or sent again. */
export function cleanReply(reply: Reply, secrets: SecretFilter): Reply {
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
