import type { JSONRPCMessage, MCPTransport, MCPTransportSendOptions } from "@ai-sdk/mcp";
import { isJsonObject, type Json, type JsonObject, parseJson, type TextMask } from "@sluice/core";
import { jsonFault, messageOf } from "@sluice/core/runtime";
import { maskedHead } from "../../../secrets/cut-text.ts";

/** Unrequested messages between two answers. */
const MOST_UNASKED = 10_000;

/** Error codes for missing and invalid answers, from the range that JSON-RPC leaves to implementations. */
export const NO_ANSWER = -32_099;
export const BAD_ANSWER = -32_098;

/** Why a connection ended. */
export interface End {
  readonly code: "ended" | "too_large" | "flood" | "stalled" | "hung" | "forgotten" | "closed";
  readonly message: string;
}

export interface TransportOptions {
  readonly maxMessageBytes: number;
  /** Throws for a message that violates the protocol. */
  readonly validate: (value: unknown) => JSONRPCMessage;
  /** Masks what is cut of the server's messages. */
  readonly secrets: TextMask;
  /** Called once for each kind of misbehaviour that the connection survives. */
  readonly notice: (message: string) => void;
}

/** A connection that filters messages of a server: the client gets each awaited answer once, and nothing else. */
export abstract class Transport implements MCPTransport {
  readonly supportsProtocolVersionDiscovery = true;
  // Set by the client.
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  /** Why the connection ended; undefined while it is open. */
  ended: End | undefined;
  /** Number of messages received. */
  heard = 0;
  /** Whether the list of tools may have changed since it was last requested. */
  isStale = true;
  /** How often the server has announced a change of its tools. */
  announced = 0;
  /** The end of the server's error output. */
  stderr = "";

  readonly #limits: TransportOptions;
  readonly #awaited = new Map<number, () => void>();
  /** Cancelled requests, whose answers may still come. */
  readonly #givenUp = new Set<number>();
  readonly #noticed = new Set<string>();
  #unasked = 0;
  #gone: Promise<void> | undefined;

  constructor(limits: TransportOptions) {
    this.#limits = limits;
  }

  abstract start(): Promise<void>;
  abstract send(message: JSONRPCMessage, options?: MCPTransportSendOptions): Promise<void>;
  /** Sends a message that needs no answer. */
  protected abstract reply(message: JSONRPCMessage): void;
  /** Cancels a request at the server. */
  protected abstract cancel(message: JSONRPCMessage): void;
  /** Releases everything once the connection ended. */
  protected abstract leave(): Promise<void>;

  /** Closes the connection and cancels everything in flight. The first reason is kept. */
  end(end: End): void {
    if (this.ended !== undefined) return;
    this.ended = end;
    this.#gone = this.leave();
    for (const forget of this.#awaited.values()) forget();
    this.#awaited.clear();
    this.onclose?.();
  }

  async close(): Promise<void> {
    this.end({ code: "closed", message: "it was closed" });
    await this.#gone;
  }

  /** Kills the server's process at once, for when this process exits. */
  kill(): void {
    // A server without a process of ours has nothing to kill.
  }

  protected tooLarge(): void {
    this.end({ code: "too_large", message: `it sent a message of more than ${this.#limits.maxMessageBytes} bytes` });
  }

  /** Registers a request until its answer comes or its signal aborts. */
  protected asked(message: JSONRPCMessage, signal: AbortSignal | undefined): void {
    if (!("method" in message) || !("id" in message) || typeof message.id !== "number") return;
    const { id, method } = message;
    const onAbort = (): void => {
      if (!this.#settle(id)) return;
      this.#givenUp.add(id);
      // The handshake cannot be cancelled; a server that is no longer needed is stopped.
      if (method === "initialize") return;
      const params = { requestId: id, reason: "stopped" };
      this.cancel({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#awaited.set(id, () => signal?.removeEventListener("abort", onAbort));
  }

  protected awaits(id: number): boolean {
    return this.#awaited.has(id);
  }

  /** The beginning of a text of the server. */
  protected shortened(text: string, longest: number): string {
    return maskedHead(text, longest, this.#limits.secrets);
  }

  /** Answers a request with an error. */
  protected fail(id: number, code: number, message: string): void {
    this.#deliver(id, { jsonrpc: "2.0", id, error: { code, message } });
  }

  /** Takes a message of the server. */
  protected take(text: string): void {
    if (this.ended !== undefined) return;
    this.heard += 1;
    const parsed = hasPrototypeKey(text) ? undefined : parseJson(text);
    if (parsed?.ok !== true) {
      this.#unrequested("junk", `it sends invalid JSON: ${JSON.stringify(this.shortened(text, 100))}`);
      return;
    }
    // Older protocol versions send batches.
    for (const message of Array.isArray(parsed.value) ? parsed.value : [parsed.value]) {
      if (this.ended === undefined) this.#takeOne(message);
    }
  }

  #takeOne(message: Json): void {
    if (!isJsonObject(message)) {
      this.#unrequested("junk", "it sends invalid messages");
      return;
    }
    const { id, method } = message;
    if (method === undefined && typeof id === "number") {
      if (this.#awaited.has(id)) {
        this.#takeAnswer(id, message);
        return;
      }
      if (this.#givenUp.delete(id)) return;
    }
    if (method === undefined) this.#unrequested("stray", "it answered an unknown request");
    else if (typeof id === "number" || typeof id === "string") this.#refuse(id, method);
    else {
      this.#unrequested();
      if (method === "notifications/tools/list_changed") {
        this.isStale = true;
        this.announced += 1;
      }
    }
  }

  #takeAnswer(id: number, message: JsonObject): void {
    try {
      if (jsonFault(message) !== undefined) throw new Error("it is nested too deeply");
      this.#deliver(id, this.#limits.validate(message));
    } catch (thrown) {
      this.fail(id, BAD_ANSWER, `the answer violates the protocol: ${this.shortened(messageOf(thrown), 300)}`);
    }
  }

  /** Refuses all requests of a server except pings: no sampling, no elicitation, no roots. */
  #refuse(id: string | number, method: Json): void {
    const isPing = method === "ping";
    this.#unrequested(
      isPing ? undefined : "request",
      `it requested ${this.shortened(JSON.stringify(method), 60)}, which was refused`,
    );
    const error = { code: -32_601, message: "this client does not support server requests" };
    this.reply({ jsonrpc: "2.0", id, ...(isPing ? { result: {} } : { error }) });
  }

  #deliver(id: number, message: JSONRPCMessage): void {
    if (!this.#settle(id)) return;
    this.#unasked = 0;
    this.onmessage?.(message);
  }

  #settle(id: number): boolean {
    this.#awaited.get(id)?.();
    return this.#awaited.delete(id);
  }

  /** Counts an unrequested message, and reports the first one of a kind. */
  #unrequested(kind?: string, notice = ""): void {
    this.#unasked += 1;
    if (this.#unasked > MOST_UNASKED)
      this.end({ code: "flood", message: `it sent ${MOST_UNASKED} unrequested messages` });
    if (kind === undefined || this.#noticed.has(kind)) return;
    this.#noticed.add(kind);
    this.#limits.notice(notice);
  }
}

/** Whether there is a key `__proto__` in any JSON spelling, which careless copying turns into an object's prototype. */
function hasPrototypeKey(text: string): boolean {
  const plain = text.replaceAll(/\\u00([5-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return /"__proto__"\s*:/.test(plain);
}
