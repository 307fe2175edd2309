import type { LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider";
import type { Json, JsonObject } from "@sluice/core";
import { digestOf, redactText } from "@sluice/core/runtime";
import type { RecordedMessage, RecordedRequest } from "./cassette.ts";
import { type Mask, mapTexts } from "./mask.ts";
import { encodeValue } from "./values.ts";

/** Hex digits of a message's digest. */
const SHORT_DIGEST = 16;
const LONGEST_LINE = 160;
/** Characters of a line before the first differing one. */
const BEFORE_DIFFERENCE = 60;

/** A request as it is compared and recorded. */
export interface RequestShape {
  readonly digest: string;
  readonly messages: readonly { readonly role: string; readonly digest: string }[];
  readonly tools: readonly (readonly [name: string, digest: string])[];
  readonly settings: JsonObject;
  /** The redacted text of a message, for readers. */
  textOf(index: number): string;
}

export interface RequestOptions {
  readonly mask: Mask;
  /** Removes parts of texts that differ each time. */
  readonly normalize?: ((text: string) => string) | undefined;
  /** Digests of earlier messages: transcripts only grow. */
  readonly known: WeakMap<LanguageModelV4Message, string>;
}

/** Captures a request before its transcript grows. Headers and the abort signal are not part of it. */
export function requestShape(
  call: LanguageModelV4CallOptions,
  { mask, normalize, known }: RequestOptions,
): RequestShape {
  const { prompt, tools = [], abortSignal: _signal, headers: _headers, ...settings } = call;
  const clean = (text: string): string => {
    const masked = mask.text(text);
    return (normalize === undefined ? masked : normalize(masked)).toWellFormed();
  };
  const messageDigest = (message: LanguageModelV4Message): string => {
    const digest = known.get(message) ?? shortDigest(mapTexts(encodeValue(message), clean));
    known.set(message, digest);
    return digest;
  };
  const messages = prompt.map((message) => ({ role: message.role, digest: messageDigest(message) }));
  const offered = tools.map((tool) => [clean(tool.name), shortDigest(mapTexts(encodeValue(tool), clean))] as const);
  const others = Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [key, mapTexts(encodeValue(value), clean)]),
  );
  const kept = [...prompt];
  return {
    digest: digestOf([messages.map(({ digest }) => digest), offered.map(([, digest]) => digest), others]),
    messages,
    tools: offered,
    settings: others,
    textOf: (index) => {
      const message = kept[index];
      return message === undefined ? "" : redactText(clean(messageText(message)));
    },
  };
}

/** The recorded form of a request, with the messages since the last reply: earlier exchanges contain the others. */
export function encodeRequest(shape: RequestShape, texts: boolean): RecordedRequest {
  const from = Math.max(
    0,
    shape.messages.findLastIndex(({ role }) => role === "assistant"),
  );
  const messages = shape.messages.slice(from).map(({ role, digest }, index): RecordedMessage => {
    return texts && role !== "assistant" ? { role, digest, text: shape.textOf(from + index) } : { role, digest };
  });
  return { digest: shape.digest, from, messages, tools: [...shape.tools], settings: shape.settings };
}

/** The difference between the recorded and the current request, in a few lines. */
export function difference(recorded: RecordedRequest, now: RequestShape): string {
  const { from, messages } = recorded;
  for (const [index, message] of messages.entries()) {
    const at = from + index;
    const here = now.messages[at];
    if (here === undefined) return `the recorded request has ${from + messages.length} messages, this one has ${at}`;
    if (here.digest === message.digest) continue;
    const name = `message ${at + 1} (${here.role})`;
    if (here.role !== message.role) return `${name} was a message of role ${message.role}`;
    return message.text === undefined
      ? `${name} differs; its text was not recorded. Now: ${clip(now.textOf(at), 0)}`
      : `${name} differs${textDifference(message.text, now.textOf(at))}`;
  }
  const length = from + messages.length;
  if (now.messages.length > length)
    return `the recorded request has ${length} messages, this one has ${now.messages.length}`;
  return (
    toolsDifference(recorded, now) ??
    settingsDifference(recorded, now) ??
    `a message before message ${from + 1} differs`
  );
}

function textDifference(recorded: string, now: string): string {
  const [before, after] = [recorded.split("\n"), now.split("\n")];
  const line = before.findIndex((text, index) => text !== after[index]);
  const at = line === -1 ? before.length : line;
  const [was, is] = [before[at], after[at]];
  if (was === undefined && is === undefined) return " in a part that is not text";
  const column = sharedStart(was ?? "", is ?? "");
  const show = (text: string | undefined): string => (text === undefined ? "(it ends here)" : clip(text, column));
  return ` in line ${at + 1}:\n  recorded: ${show(was)}\n  now:      ${show(is)}`;
}

function toolsDifference(recorded: RecordedRequest, now: RequestShape): string | undefined {
  const [before, after] = [new Map(recorded.tools), new Map(now.tools)];
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const added = [...after.keys()].filter((name) => !before.has(name));
  const changed = [...after].filter(([name, digest]) => before.has(name) && before.get(name) !== digest);
  const changes = [
    ...removed.map((name) => `${name} was removed`),
    ...added.map((name) => `${name} was added`),
    ...changed.map(([name]) => `${name} has a different description or schema`),
  ];
  if (changes.length > 0) return `the tools differ: ${changes.join(", ")}`;
  const order = (tools: Readonly<RecordedRequest["tools"]>): string => tools.map(([name]) => name).join(", ");
  return order(recorded.tools) === order(now.tools) ? undefined : "the tools are in a different order";
}

function settingsDifference(recorded: RecordedRequest, now: RequestShape): string | undefined {
  const [before, after] = [new Map(Object.entries(recorded.settings)), new Map(Object.entries(now.settings))];
  const shown = (value: Json | undefined): string => (value === undefined ? "not set" : clip(JSON.stringify(value), 0));
  const changes = [...new Set([...before.keys(), ...after.keys()])].flatMap((key) => {
    const [was, is] = [shown(before.get(key)), shown(after.get(key))];
    return was === is ? [] : [`${key} was ${was}, now ${is}`];
  });
  return changes.length === 0 ? undefined : `the settings differ: ${changes.join("; ")}`;
}

/** How many characters two texts share at their beginning. */
export function sharedStart(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

/** A part of a long text that shows its character `around`, on one line. */
export function clip(text: string, around: number): string {
  const start = text.length <= LONGEST_LINE ? 0 : Math.max(0, around - BEFORE_DIFFERENCE);
  const part = text.slice(start, start + LONGEST_LINE);
  return `${start > 0 ? "…" : ""}${part.replaceAll("\n", "\\n").toWellFormed()}${start + LONGEST_LINE < text.length ? "…" : ""}`;
}

function messageText(message: LanguageModelV4Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map(partText).join("\n");
}

type Part = Exclude<LanguageModelV4Message["content"], string>[number];

function partText(part: Part): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text;
    case "tool-call":
      return `${part.toolName} ${JSON.stringify(part.input)}`;
    case "tool-result": {
      const { output } = part;
      if (output.type === "content") return `${part.toolName}: ${output.value.map(itemText).join("\n")}`;
      const value = "value" in output ? output.value : output.type;
      return `${part.toolName}: ${typeof value === "string" ? value : JSON.stringify(encodeValue(value), null, 1)}`;
    }
    default:
      return `[${part.type}]`;
  }
}

type ContentItem = Extract<
  Extract<Part, { readonly type: "tool-result" }>["output"],
  { readonly type: "content" }
>["value"][number];

/** A file as its digest, because a reader has no use for its bytes. */
function itemText(item: ContentItem): string {
  if (item.type === "text") return item.text;
  if (item.type !== "file") return `[${item.type}]`;
  return `[${item.mediaType} ${item.filename ?? ""} ${shortDigest(encodeValue(item.data))}]`;
}

function shortDigest(value: Json): string {
  return digestOf(value).slice(0, SHORT_DIGEST);
}
