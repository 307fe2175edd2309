import type { JSONRPCMessage } from "@ai-sdk/mcp";
import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { jsonFault, messageOf } from "@sluice/core/runtime";

/** Unrequested messages between two answers. */
const MOST_UNASKED = 10_000;
/** A key `__proto__`, which careless copying turns into an object's prototype, in any JSON spelling. */
const PROTOTYPE_KEY = new RegExp(`"${Array.from("__proto__", spellings).join("")}"\\s*:`);

/** The ways to write a letter in JSON. */
function spellings(letter: string): string {
  const [high = "", low = ""] = letter.charCodeAt(0).toString(16);
  return `(?:${letter}|\\\\u00${high}[${low}${low.toUpperCase()}])`;
}

/** Error codes for missing and invalid answers, from the range that JSON-RPC leaves to implementations. */
export const NO_ANSWER = -32_099;
export const BAD_ANSWER = -32_098;

/** Why a connection ended. */
export interface End {
  readonly code: "ended" | "too_large" | "flood" | "stalled" | "hung" | "forgotten" | "closed";
  readonly message: string;
}

export interface InboxOptions {
  /** Throws for a message that violates the protocol. */
  readonly validate: (value: unknown) => JSONRPCMessage;
  /** Passes an answer to the client. */
  readonly deliver: (message: JSONRPCMessage) => void;
  /** Sends an answer to the server. */
  readonly reply: (message: JSONRPCMessage) => void;
  /** Cancels a request at the server. */
  readonly cancel: (id: number) => void;
  /** Called when the server announces that its tools changed. */
  readonly changed: () => void;
  /** Called once for each kind of misbehaviour that the connection survives. */
  readonly notice: (message: string) => void;
  readonly end: (end: End) => void;
}

/** What every transport is given. */
export interface TransportOptions extends Pick<InboxOptions, "validate" | "changed" | "notice"> {
  readonly maxMessageBytes: number;
  readonly ended: (end: End) => void;
}

/** Filters messages of a server: the client gets each awaited answer once, and nothing else. */
export interface Inbox {
  /** Registers a request until its answer comes or its signal aborts. */
  asked(message: JSONRPCMessage, signal: AbortSignal | undefined): void;
  take(text: string): void;
  awaits(id: number): boolean;
  /** Answers a request with an error. */
  fail(id: number, code: number, message: string): void;
  /** Number of messages received. */
  readonly heard: number;
  close(): void;
}

export function createInbox(options: InboxOptions): Inbox {
  const awaited = new Map<number, () => void>();
  /** Cancelled requests, whose answers may still come. */
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
    if (unasked > MOST_UNASKED) options.end({ code: "flood", message: `it sent ${MOST_UNASKED} unrequested messages` });
  };
  const deliver = (id: number, message: JSONRPCMessage): void => {
    if (!settle(id)) return;
    unasked = 0;
    options.deliver(message);
  };
  const fail = (id: number, code: number, message: string): void =>
    deliver(id, { jsonrpc: "2.0", id, error: { code, message } });

  /** Refuses all requests of a server except pings: no sampling, no elicitation, no roots. */
  const refuse = (id: string | number, method: Json): void => {
    const error = { code: -32_601, message: "this client does not support server requests" };
    options.reply(method === "ping" ? { jsonrpc: "2.0", id, result: {} } : { jsonrpc: "2.0", id, error });
    if (method !== "ping") notice("request", `it requested ${JSON.stringify(method).slice(0, 60)}, which was refused`);
  };

  const takeAnswer = (id: number, message: JsonObject): void => {
    try {
      if (jsonFault(message) !== undefined) throw new Error("it is nested too deeply");
      deliver(id, options.validate(message));
    } catch (thrown) {
      fail(id, BAD_ANSWER, `the answer violates the protocol: ${messageOf(thrown).slice(0, 300)}`);
    }
  };

  const takeOne = (message: Json): void => {
    if (!isJsonObject(message)) {
      countUnasked();
      notice("junk", "it sends invalid messages");
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
      notice("stray", "it answered an unknown request");
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
        // The handshake cannot be cancelled; a server that is no longer needed is stopped.
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
        notice("junk", `it sends invalid JSON: ${JSON.stringify(text.slice(0, 100))}`);
        return;
      }
      // Older protocol versions send batches.
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
