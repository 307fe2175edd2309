import type { LanguageModelV4FunctionTool, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { SecretFilter } from "@sluice/core/runtime";
import { maskedHead } from "../../secrets/cut-text.ts";
import { CUT, failureOf } from "./failure.ts";
import {
  cleanWord,
  parseToolInput,
  providerData,
  toBase64,
  toJson,
  uniqueCallId,
  usageOf,
  warningText,
  wireInput,
  wireNameOf,
  word,
} from "./provider-values.ts";
import type {
  AssistantPart,
  FinishReason,
  ModelFailure,
  ModelReply,
  ModelToolCall,
  ModelUsage,
  ProviderData,
} from "./reply.ts";

/** Nothing else limits what a broken or hostile server streams. */
const MAX_REPLY_CHARS = 32 * 1024 * 1024;
const MAX_WARNINGS = 20;
/** The size of a part besides its text: empty parts need memory too. */
const PART_CHARS = 64;
const LONGEST_TOOL_NAME = 256;
/** The provider's ids, kinds, media types and reasons. */
const LONGEST_WORD = 1024;

export interface ReplyOptions {
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** Ids of the calls already in the transcript. */
  readonly callIds?: ReadonlySet<string>;
  /** Applied before a text is cut or rewritten: the remainder of a secret could not be recognized afterwards. */
  readonly secrets: SecretFilter;
  readonly onText?: (delta: string, kind: BlockKind) => void;
}

type FinishPart = Extract<LanguageModelV4StreamPart, { type: "finish" }>;
/** The content of the `finish` part. */
type Finish = {
  readonly unified: unknown;
  readonly raw: unknown;
  readonly usage: ModelUsage;
  readonly metadata: ProviderData | undefined;
};
type CallPart = Extract<LanguageModelV4StreamPart, { type: "tool-call" }>;

/**
 * Builds a reply from the parts of one stream. Parts in the wrong order, with an unknown id or of an unknown type never throw: they
 * are used as far as possible, or counted in a warning.
 */
export class ReplyBuilder {
  finished = false;
  readonly #options: ReplyOptions;
  readonly #parts: Draft[] = [];
  /** Open blocks by kind and id: providers number text and reasoning separately. */
  readonly #open: { text?: Map<string, Block>; reasoning?: Map<string, Block> } = {};
  readonly #calls: ModelToolCall[] = [];
  /** Call ids of this reply, and the current one for each id of the provider. */
  readonly #ids = new Set<string>();
  readonly #renamed = new Map<string, string>();
  readonly #warnings: string[] = [];
  /** Parts that were ignored, by their type; created on first use. */
  #ignored: Map<string, number> | undefined;
  #finish: Finish | undefined;
  #response: { id?: string; model?: string } = {};
  #size = 0;
  /** The text of the current part, for `onText`. */
  #delta = "";
  #deltaKind: BlockKind = "text";

  constructor(options: ReplyOptions) {
    this.#options = options;
  }

  /** Adds a part; a failure ends the call. Throws only what `onText` throws. */
  take(part: LanguageModelV4StreamPart): ModelFailure | undefined {
    try {
      const failure = this.#read(part);
      if (failure !== undefined) return failure;
    } catch {
      // Reading a part may run foreign code, such as getters.
      this.#ignore("unreadable");
    }
    const delta = this.#delta;
    if (delta !== "") {
      this.#delta = "";
      this.#options.onText?.(delta, this.#deltaKind);
    }
    if (this.#size <= MAX_REPLY_CHARS) return undefined;
    const message = `the model's reply is longer than ${MAX_REPLY_CHARS} characters`;
    return { kind: "permanent", code: "reply_too_large", message };
  }

  #read(part: LanguageModelV4StreamPart): ModelFailure | undefined {
    switch (part?.type) {
      case "text-delta":
        this.#grow("text", part);
        break;
      case "reasoning-delta":
        this.#grow("reasoning", part);
        break;
      case "text-start":
        this.#note(this.#begin("text", part.id), part);
        break;
      case "reasoning-start":
        this.#note(this.#begin("reasoning", part.id), part);
        break;
      case "text-end":
        this.#seal("text", part);
        break;
      case "reasoning-end":
        this.#seal("reasoning", part);
        break;
      case "tool-call":
        this.#call(part);
        break;
      case "tool-result":
        this.#providerResult(part);
        break;
      case "custom":
        if (isCustomKind(part.kind)) this.#keep({ type: "custom", kind: part.kind, ...this.#returned(part) });
        else this.#ignore(part.type);
        break;
      case "file":
      case "reasoning-file":
        this.#file(part);
        break;
      case "error":
        return failureOf(part.error, true, this.#options.secrets);
      case "finish":
        this.#end(part);
        break;
      case "stream-start":
        for (const warning of Array.isArray(part.warnings) ? part.warnings : []) this.#warn(warningText(warning));
        break;
      case "response-metadata":
        if (typeof part.id === "string") this.#response.id = this.#clean(part.id, LONGEST_WORD);
        if (typeof part.modelId === "string") this.#response.model = this.#clean(part.modelId, LONGEST_WORD);
        break;
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-end":
      case "ping":
      case "raw":
      case "source": // no provider accepts sources in a transcript
        break;
      case "tool-approval-request": // only the gate approves calls, and not those of providers
        this.#ignore(part.type);
        break;
      default:
        this.#ignore(typeOf(part));
    }
    return undefined;
  }

  build(): ModelReply {
    const finish = this.#finish;
    if (finish === undefined || finish.unified === "interrupted") return { ok: false, error: CUT };
    const { unified, raw, usage, metadata } = finish;
    if (unified === "error") {
      const message = "the provider ended the reply with an unspecified error";
      return { ok: false, error: { kind: "transient", code: "provider_error", message } };
    }
    const finishReason = FINISH_REASONS.get(unified) ?? "other";
    if (finishReason === "length") this.#truncateLastCall("the output limit was reached");
    if (finishReason === "content-filter") this.#truncateLastCall("a content filter stopped the reply");
    for (const [type, count] of this.#ignored ?? []) this.#warn(`ignored in the stream: ${type} (${count})`);

    const text = this.#parts.reduce((all, part) => (part.type === "text" ? all + part.text : all), "");
    const content = messageOf(this.#parts);
    const { id, model } = this.#response;
    return {
      ok: true,
      content,
      calls: this.#calls,
      text,
      finishReason,
      ...(typeof raw === "string" ? { rawFinishReason: this.#clean(raw, LONGEST_WORD) } : {}),
      usage,
      warnings: this.#warnings,
      ...(id === undefined && model === undefined ? {} : { response: this.#response }),
      ...(metadata === undefined ? {} : { providerMetadata: metadata }),
    };
  }

  #begin(kind: BlockKind, id: string): Block {
    const block: Block = { type: kind, text: "", metadata: undefined };
    this.#open[kind] ??= new Map();
    this.#open[kind].set(id, block);
    this.#keep(block);
    return block;
  }

  #keep(part: Draft): void {
    this.#size += PART_CHARS;
    this.#parts.push(part);
  }

  /** Provider metadata to send back with its part, as the part's member. */
  #returned(part: { providerMetadata?: unknown }): { readonly providerOptions?: ProviderData } {
    const data = this.#data(part.providerMetadata);
    return data === undefined ? {} : { providerOptions: data };
  }

  #data(metadata: unknown): ProviderData | undefined {
    const data = providerData(metadata);
    if (data !== undefined) this.#size += sizeOf(data);
    return data;
  }

  #note(block: Block, { providerMetadata }: { providerMetadata?: unknown }): void {
    block.metadata = this.#data(providerMetadata) ?? block.metadata;
  }

  #grow(kind: BlockKind, part: { id: string; delta: string; providerMetadata?: unknown }): void {
    const block = this.#open[kind]?.get(part.id) ?? this.#begin(kind, part.id);
    this.#note(block, part);
    const { delta } = part;
    if (typeof delta !== "string" || delta === "") return;
    block.text += delta;
    this.#size += delta.length;
    this.#delta = delta;
    this.#deltaKind = kind;
  }

  #end({ finishReason, usage, providerMetadata }: FinishPart): void {
    this.#finish = {
      unified: finishReason?.unified,
      raw: finishReason?.raw,
      usage: usageOf(usage),
      metadata: this.#data(providerMetadata),
    };
    this.finished = true;
  }

  #seal(kind: BlockKind, part: { id: string; providerMetadata?: unknown }): void {
    const open = this.#open[kind]?.get(part.id);
    // The end of a block that never began matters only for its metadata.
    if (open === undefined && part.providerMetadata === undefined) return;
    this.#note(open ?? this.#begin(kind, part.id), part);
    this.#open[kind]?.delete(part.id);
  }

  #call(part: CallPart): void {
    const sentInput: unknown = part.input;
    // The specification requires a JSON string; some model objects send the value itself.
    const parsed = parseToolInput(
      typeof sentInput === "string" ? sentInput : (JSON.stringify(toJson(sentInput)) ?? ""),
      this.#options.secrets,
    );
    const tool = this.#clean(word(part.toolName), LONGEST_TOOL_NAME);
    const wireName = wireNameOf(tool, this.#options.tools);
    const index = this.#calls.length;
    const taken = (id: string): boolean => this.#ids.has(id) || this.#options.callIds?.has(id) === true;
    const id = uniqueCallId(this.#id(part.toolCallId), index, taken);
    this.#ids.add(id);
    this.#renamed.set(part.toolCallId, id);
    this.#size += parsed.rawInput.length + tool.length;
    const executed = part.providerExecuted === true ? ({ providerExecuted: true } as const) : {};
    const kept = { toolCallId: id, toolName: wireName, input: wireInput(parsed.input) };
    this.#keep({ type: "tool-call", ...kept, ...executed, ...this.#returned(part) });
    if (part.providerExecuted === true) return;
    this.#calls.push({ index, id, tool, ...(wireName === tool ? {} : { wireName }), ...parsed });
  }

  /** A stopped reply was cut in its last block; cut arguments could look complete. */
  #truncateLastCall(why: string): void {
    const lastPart = this.#parts.at(-1);
    const call = this.#calls.at(-1);
    if (lastPart?.type !== "tool-call" || call === undefined || lastPart.toolCallId !== call.id) return;
    const { input: _cut, ...rest } = call;
    const message = `${why} inside this call, so its arguments are incomplete`;
    this.#calls[call.index] = { ...rest, inputError: { code: "truncated", message } };
  }

  #providerResult(part: Extract<LanguageModelV4StreamPart, { type: "tool-result" }>): void {
    if (part.preliminary === true) return; // a final one follows
    const value = toJson(part.result) ?? null;
    this.#size += sizeOf(value);
    this.#keep({
      type: "tool-result",
      toolCallId: this.#renamed.get(part.toolCallId) ?? this.#id(part.toolCallId).slice(0, LONGEST_WORD),
      toolName: wireNameOf(this.#clean(word(part.toolName), LONGEST_TOOL_NAME), this.#options.tools),
      output:
        typeof value === "string" && part.isError !== true
          ? { type: "text", value }
          : { type: part.isError === true ? "error-json" : "json", value },
      ...this.#returned(part),
    });
  }

  #file(part: Extract<LanguageModelV4StreamPart, { type: "file" | "reasoning-file" }>): void {
    const bytes = part.data?.type === "data" ? part.data.data : undefined;
    // The file behind a URL may no longer exist when it is sent again.
    if ((typeof bytes !== "string" && !(bytes instanceof Uint8Array)) || !isMediaType(part.mediaType)) {
      this.#ignore(part.type);
      return;
    }
    const data = typeof bytes === "string" ? bytes : toBase64(bytes);
    this.#size += data.length;
    const { type, mediaType } = part;
    this.#keep({ type, data: { type: "data", data }, mediaType, ...this.#returned(part) });
  }

  #ignore(type: string): void {
    const name = JSON.stringify(this.#clean(type, 60));
    this.#ignored ??= new Map();
    const seen = this.#ignored.get(name);
    if (seen !== undefined || this.#ignored.size < MAX_WARNINGS) this.#ignored.set(name, (seen ?? 0) + 1);
  }

  #warn(warning: string): void {
    if (this.#warnings.length < MAX_WARNINGS) this.#warnings.push(this.#clean(warning, 300));
  }

  #id(sent: unknown): string {
    return cleanWord(word(sent), this.#options.secrets);
  }

  #clean(text: string, longest: number): string {
    const { secrets } = this.#options;
    return text.length > longest ? maskedHead(text, longest, secrets) : secrets.text(text);
  }
}

const FINISH_REASONS: ReadonlyMap<unknown, FinishReason> = new Map(
  (["stop", "length", "content-filter", "tool-calls", "other"] as const).map((reason) => [reason, reason]),
);

function typeOf(part: unknown): string {
  const type = typeof part === "object" && part !== null && "type" in part ? part.type : undefined;
  return typeof type === "string" ? type : "no type";
}

function isCustomKind(kind: unknown): kind is `${string}.${string}` {
  return typeof kind === "string" && kind.includes(".") && kind.length <= LONGEST_WORD;
}

function isMediaType(type: unknown): type is string {
  return typeof type === "string" && type.length <= LONGEST_WORD;
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}

type BlockKind = "text" | "reasoning";
/** A text or reasoning block that is still being streamed. */
interface Block {
  readonly type: BlockKind;
  text: string;
  metadata: ProviderData | undefined;
}

type Draft = Block | Exclude<AssistantPart, { type: "text" | "reasoning" }>;

/** The message for the transcript. Providers reject messages of only reasoning or custom parts, and those that end with reasoning. */
function messageOf(drafts: readonly Draft[]): AssistantPart[] {
  const parts = drafts.map(sealed).filter((part) => part !== undefined);
  const end = parts.findLastIndex(({ type }) => type !== "reasoning" && type !== "reasoning-file" && type !== "custom");
  return end < 0 ? [] : parts.filter(({ type }, at) => at <= end || type === "custom");
}

/** Some providers reject blank text; with metadata it may carry a signature. */
function sealed(part: Draft): AssistantPart | undefined {
  if (part.type !== "text" && part.type !== "reasoning") return part;
  const { type, text, metadata } = part;
  if (metadata !== undefined) return { type, text, providerOptions: metadata };
  return text.trim() === "" ? undefined : { type, text };
}
