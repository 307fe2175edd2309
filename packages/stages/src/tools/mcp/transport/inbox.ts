import type { JSONRPCMessage } from "@ai-sdk/mcp";
import { isJsonObject, type Json, type JsonObject, jsonFault, messageOf, parseJson } from "@sluice/core";

/** Messages nobody asked for, between two answers, after which a server is only a burden. */
const MOST_UNASKED = 10_000;
/** A key that would reach an object's prototype in whoever copies it carelessly, in each way JSON can write it. */
const PROTOTYPE_KEY = new RegExp(`"${Array.from("__proto__", written).join("")}"\\s*:`);

/** A letter as JSON text may hold it. */
function written(letter: string): string {
  const [high = "", low = ""] = letter.charCodeAt(0).toString(16);
  return `(?:${letter}|\\\\u00${high}[${low}${low.toUpperCase()}])`;
}

/** Error codes that stand in an answer's place; from the range that JSON-RPC leaves to implementations. */
export const NO_ANSWER = -32_099;
export const BAD_ANSWER = -32_098;

/** Why a connection is over. */
export interface End {
  readonly code: "ended" | "too_large" | "flood" | "deaf" | "hung" | "forgotten" | "closed";
  readonly message: string;
}

export interface InboxOptions {
  /** Throws for what is no message of the protocol. */
  readonly validate: (value: unknown) => JSONRPCMessage;
  /** Hands an answer to the client. */
  readonly deliver: (message: JSONRPCMessage) => void;
  /** Sends an answer of ours to the server. */
  readonly reply: (message: JSONRPCMessage) => void;
  /** Tells the server that an answer is not waited for any more. */
  readonly cancel: (id: number) => void;
  /** The server says that its tools are others now. */
  readonly changed: () => void;
  /** Something the server did wrong that the connection survives. Said once for each kind. */
  readonly notice: (message: string) => void;
  readonly end: (end: End) => void;
}

/** What lets messages of a server through to the client: answers that are awaited, each once, and nothing else. */
export interface Inbox {
  /** Remembers that a request is sent, until its answer comes or its signal aborts. */
  asked(message: JSONRPCMessage, signal: AbortSignal | undefined): void;
  take(text: string): void;
  awaits(id: number): boolean;
  /** Puts an error in the place of an answer that will not come. */
  fail(id: number, code: number, message: string): void;
  /** Messages so far, of whatever kind. */
  readonly heard: number;
  close(): void;
}

export function createInbox(options: InboxOptions): Inbox {
  const awaited = new Map<number, () => void>();
  /** Requests that were given up: their answers may still come, and nobody is to blame for that. */
  const givenUp = new Set<number>();
  const noticed = new Set<string>();
  let heard = 0;
  let unasked = 0;
  let closed = false;

  const notice = (kind: string, message: string): void => {
    if (noticed.has(kind)) return;
    noticed.add(kind);
    options.notice(message);
  };
  const settle = (id: number): boolean => {
    awaited.get(id)?.();
    return awaited.delete(id);
  };
  const countUnasked = (): void => {
    unasked += 1;
    if (unasked > MOST_UNASKED)
      options.end({ code: "flood", message: `it sent ${MOST_UNASKED} messages that nobody asked for` });
  };
  const deliver = (id: number, message: JSONRPCMessage): void => {
    if (!settle(id)) return;
    unasked = 0;
    options.deliver(message);
  };
  const fail = (id: number, code: number, message: string): void =>
    deliver(id, { jsonrpc: "2.0", id, error: { code, message } });

  /** Nothing a server asks of us is done: no sampling, no elicitation, no roots. */
  const refuse = (id: string | number, method: Json): void => {
    const error = { code: -32_601, message: "this client does nothing for a server" };
    options.reply(method === "ping" ? { jsonrpc: "2.0", id, result: {} } : { jsonrpc: "2.0", id, error });
    if (method !== "ping") notice("request", `it asked for ${JSON.stringify(method).slice(0, 60)}, which was refused`);
  };

  const takeAnswer = (id: number, message: JsonObject): void => {
    try {
      if (jsonFault(message) !== undefined) throw new Error("it is nested too deeply");
      deliver(id, options.validate(message));
    } catch (thrown) {
      fail(id, BAD_ANSWER, `the answer is not one of the protocol: ${messageOf(thrown).slice(0, 300)}`);
    }
  };

  const takeOne = (message: Json): void => {
    if (!isJsonObject(message)) {
      countUnasked();
      notice("junk", "it sends what is no message");
      return;
    }
    const { id, method } = message;
    if (method === undefined && typeof id === "number" && awaited.has(id)) {
      takeAnswer(id, message);
      return;
    }
    if (method === undefined && typeof id === "number" && givenUp.delete(id)) return;
    countUnasked();
    if (method === undefined) {
      notice("stray", "it answered what was not asked");
      return;
    }
    if (typeof id === "number" || typeof id === "string") refuse(id, method);
    else if (method === "notifications/tools/list_changed") options.changed();
  };

  return {
    asked: (message, signal) => {
      if (!("method" in message) || !("id" in message) || typeof message.id !== "number") return;
      const { id, method } = message;
      const onAbort = (): void => {
        // The handshake cannot be called off; a server that is not needed any more is ended.
        if (!settle(id) || closed) return;
        givenUp.add(id);
        if (method !== "initialize") options.cancel(id);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      awaited.set(id, () => signal?.removeEventListener("abort", onAbort));
    },
    take: (text) => {
      if (closed) return;
      heard += 1;
      const parsed = PROTOTYPE_KEY.test(text) ? undefined : parseJson(text);
      if (parsed?.ok !== true) {
        countUnasked();
        notice("junk", `it sends what is no JSON: ${JSON.stringify(text.slice(0, 100))}`);
        return;
      }
      // Older versions of the protocol send several at once.
      for (const message of Array.isArray(parsed.value) ? parsed.value : [parsed.value]) {
        if (closed) return;
        takeOne(message);
      }
    },
    awaits: (id) => awaited.has(id),
    fail,
    get heard() {
      return heard;
    },
    close: () => {
      closed = true;
      for (const forget of awaited.values()) forget();
      awaited.clear();
    },
  };
}
