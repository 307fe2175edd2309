import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { startAnthropicServer } from "./anthropic-server.ts";
import { type RecordedRequest, type ServerReply, word } from "./sse-server.ts";

/** What the model says, by the completion tool of the stage that asks, one entry a turn. */
export type Turns = Readonly<Record<string, readonly ServerReply[]>>;

/** One request as it arrived: which turn of which stage, and in which workspace's name. */
export interface Asked {
  /** The completion tool that was offered: it tells the stage. */
  readonly stage: string;
  /** From 0. */
  readonly turn: number;
  /** The key of the process that asked. */
  readonly key: string;
  readonly body: JsonObject;
}

/** A reply that is held back until the test lets it go. */
interface Held {
  /** Resolves when the request that waits for it has come. */
  readonly reached: Promise<Asked>;
  release(): void;
}

/** A model on a loopback port that knows no state: what it says follows from the request, as with a real one. */
export interface LoopbackModel extends AsyncDisposable {
  readonly url: string;
  /** What `key` asked, in order, whatever was answered. */
  asked(key: string): readonly Asked[];
  /** Holds the next reply to this turn once, whole or from an event of its stream on. */
  hold(key: string, stage: string, turn: number, atEvent?: number): Held;
  /** Answers the next request of this turn so instead. */
  instead(key: string, stage: string, turn: number, reply: ServerReply): void;
  /** Calls back when a request has come, before it is answered. */
  onAsked(listener: (asked: Asked) => void): void;
}

export async function startLoopbackModel(turns: Turns): Promise<LoopbackModel> {
  const all: Asked[] = [];
  const overrides = new Map<string, ((asked: Asked, reply: ServerReply) => ServerReply)[]>();
  const listeners = new Set<(asked: Asked) => void>();
  const placeOf = (key: string, stage: string, turn: number): string => JSON.stringify([key, stage, turn]);
  const override = (place: string, with_: (asked: Asked, reply: ServerReply) => ServerReply): void => {
    overrides.set(place, [...(overrides.get(place) ?? []), with_]);
  };

  const server = await startAnthropicServer((request) => {
    const asked = readRequest(request);
    all.push(asked);
    for (const listener of listeners) listener(asked);
    const { key, stage, turn } = asked;
    const reply = turns[stage]?.[turn];
    if (reply === undefined) return { status: 400, error: { message: `turn ${turn} of ${stage} is not scripted` } };
    const next = overrides.get(placeOf(key, stage, turn))?.shift();
    return next === undefined ? reply : next(asked, reply);
  });

  return {
    url: server.url,
    asked: (key) => all.filter((one) => one.key === key),
    hold(key, stage, turn, atEvent) {
      const reached = Promise.withResolvers<Asked>();
      const released = Promise.withResolvers<void>();
      override(placeOf(key, stage, turn), (asked, reply) => {
        reached.resolve(asked);
        const where = atEvent === undefined ? {} : { holdAtEvent: atEvent };
        return { ...reply, ...where, hold: released.promise };
      });
      return { reached: reached.promise, release: () => released.resolve() };
    },
    instead: (key, stage, turn, reply) => override(placeOf(key, stage, turn), () => reply),
    onAsked: (listener) => void listeners.add(listener),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** The results of tools in the last message of a request, as the model reads them. */
export function lastResults(asked: Asked): readonly string[] {
  const last = list(asked.body.messages).at(-1);
  const blocks = isJsonObject(last) ? list(last.content) : [];
  return blocks.flatMap((block) =>
    isJsonObject(block) && block.type === "tool_result" ? [resultText(block.content)] : [],
  );
}

function resultText(content: Json | undefined): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((part) => (isJsonObject(part) ? word(part.text) : ""))
    .join("");
}

function readRequest({ headers, body }: RecordedRequest): Asked {
  const tools = list(body.tools).map((tool) => (isJsonObject(tool) ? word(tool.name) : ""));
  const turn = list(body.messages).filter((message) => isJsonObject(message) && message.role === "assistant").length;
  // A completion tool is offered last.
  return { stage: tools.at(-1) ?? "", turn, key: String(headers["x-api-key"]), body };
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
