import type { JSONRPCMessage, MCPTransportSendOptions } from "@ai-sdk/mcp";
import { isJsonObject, parseJson, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { systemCode } from "../../files/results.ts";
import { bodyText, eventData } from "./bytes.ts";
import type { McpSdk } from "./sdk.ts";
import { NO_ANSWER, Transport, type TransportOptions } from "./transport.ts";

/** For the last messages to a server. */
const GOODBYE_MS = 1_000;
const LONGEST_ERROR = 64 * 1024;
/** The first protocol version without sessions, notification streams and cancel messages. */
const WITHOUT_SESSIONS = "2026-07-28";

export interface HttpOptions extends TransportOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly sdk: Pick<McpSdk, "MCPClientError">;
}

/**
 * A server behind streamable HTTP. Replaces the SDK's transport, which accepts answers of any length, leaves a call waiting
 * when its stream ends early, never cancels a request, and keeps a timer after it is closed.
 */
export class HttpTransport extends Transport {
  readonly waitsForProtocolVersionDiscovery = true;
  protocolVersion?: string;

  readonly #options: HttpOptions;
  readonly #closing = new AbortController();
  #session: string | undefined;
  /** The stream for notifications. */
  #listening: "not yet" | "open" | "lost" | "never" = "not yet";
  /** The messages that are still sent while the connection closes. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: HttpOptions) {
    super(options);
    this.#options = options;
  }

  async start(): Promise<void> {
    // The first request opens the connection.
  }

  async send(message: JSONRPCMessage, options: MCPTransportSendOptions = {}): Promise<void> {
    if (this.ended !== undefined) throw new Error("the connection is closed");
    const id = "method" in message && "id" in message && typeof message.id === "number" ? message.id : undefined;
    this.asked(message, options.signal);
    if (this.#listening === "lost") this.#listen();
    const response = await this.#post(message, options);
    this.#session ??= this.#hasSessions() ? (response.headers.get("mcp-session-id") ?? undefined) : undefined;
    if (!response.ok) {
      await this.#refused(response, id);
      return;
    }
    if (id === undefined) {
      discard(response);
      if ("method" in message && message.method === "notifications/initialized") this.#listen();
      return;
    }
    if (response.body !== null && isStream(response)) {
      void this.#readAnswer(response.body, id);
      return;
    }
    const text = await bodyText(response.body, this.#options.maxMessageBytes);
    if (text === undefined) this.tooLarge();
    else this.take(text);
    this.fail(id, NO_ANSWER, "it sent something other than the answer");
  }

  protected reply(message: JSONRPCMessage): void {
    // A failure has no consequence: these messages need no answer.
    this.#post(message).then(discard, () => undefined);
  }

  protected cancel(message: JSONRPCMessage): void {
    // Without sessions, closing the answer's stream cancels the request.
    if (!this.#hasSessions()) return;
    this.#last = Promise.all([this.#last, this.#inTime((signal) => this.#request(message, {}, signal))]);
  }

  protected async leave(): Promise<void> {
    this.#closing.abort();
    await this.#last;
    if (this.#session === undefined || this.ended?.code === "forgotten") return;
    await this.#inTime((signal) => this.#fetch({ method: "DELETE", signal }));
  }

  #hasSessions(): boolean {
    return this.protocolVersion !== WITHOUT_SESSIONS;
  }

  #fetch({
    headers: more,
    ...init
  }: Omit<RequestInit, "headers"> & { headers?: Record<string, string> }): Promise<Response> {
    const headers = {
      ...this.#options.headers,
      ...(this.protocolVersion === undefined ? {} : { "mcp-protocol-version": this.protocolVersion }),
      ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      ...more,
    };
    // Keys in the headers are for this address only.
    return fetch(this.#options.url, { ...init, headers, redirect: "error" });
  }

  /** Sends a message that needs no answer, within a time limit. */
  async #inTime(request: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    const late = new AbortController();
    const disarm = systemClock.after(GOODBYE_MS, () => late.abort());
    try {
      discard(await request(late.signal));
    } catch {
      // An unreachable server has its own time limits.
    } finally {
      disarm();
    }
  }

  async #post(message: JSONRPCMessage, options: MCPTransportSendOptions = {}): Promise<Response> {
    const own = this.#closing.signal;
    const signal = options.signal === undefined ? own : AbortSignal.any([own, options.signal]);
    try {
      return await this.#request(message, options, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      // The platform's message is "fetch failed"; the reason is in the cause.
      const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
      throw new Error(`the request failed: ${systemCode(cause) ?? messageOf(cause)}`, { cause: thrown });
    }
  }

  #request(message: JSONRPCMessage, options: MCPTransportSendOptions, signal: AbortSignal): Promise<Response> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(this.#hasSessions() ? {} : { ...options.headers, ...routingHeaders(message) }),
    };
    return this.#fetch({ method: "POST", headers, body: JSON.stringify(message), signal });
  }

  async #refused(response: Response, id: number | undefined): Promise<void> {
    const { status } = response;
    const text = (await bodyText(response.body, LONGEST_ERROR)) ?? "";
    const parsed = parseJson(text);
    if (id !== undefined && parsed.ok && isJsonObject(parsed.value) && isJsonObject(parsed.value.error)) {
      this.take(JSON.stringify({ ...parsed.value, id: parsed.value.id ?? id }));
      if (!this.awaits(id)) return;
    }
    if (status === 404 && this.#session !== undefined)
      this.end({ code: "forgotten", message: "it no longer knows this session" });
    const excerpt = this.shortened(text.trim(), 300);
    const message = `it answered with HTTP ${status}${excerpt === "" ? "" : `: ${excerpt}`}`;
    throw new this.#options.sdk.MCPClientError({ message, statusCode: status });
  }

  async #readAnswer(body: ReadableStream<Uint8Array>, id: number): Promise<void> {
    try {
      await this.#read(body, () => this.awaits(id));
      this.fail(id, NO_ANSWER, "the stream of its answer ended before the answer");
    } catch (thrown) {
      this.fail(id, NO_ANSWER, `the stream of its answer broke: ${messageOf(thrown)}`);
    }
  }

  /** Opens the stream for notifications. A broken stream is opened again with the next request. */
  #listen(): void {
    if (!this.#hasSessions() || this.#listening === "open" || this.#listening === "never") return;
    this.#listening = "open";
    const lost = (): void => {
      this.#listening = "lost";
      // Notifications may have been missed.
      this.isStale = true;
    };
    const listen = async (): Promise<void> => {
      const response = await this.#fetch({
        headers: { accept: "text/event-stream" },
        signal: this.#closing.signal,
      });
      if (!response.ok || response.body === null || !isStream(response)) {
        this.#listening = "never";
        discard(response);
        return;
      }
      await this.#read(response.body, () => true);
      lost();
    };
    listen().catch(lost);
  }

  async #read(body: ReadableStream<Uint8Array>, continues: () => boolean): Promise<void> {
    try {
      for await (const text of eventData(body, this.#options.maxMessageBytes)) {
        this.take(text);
        // Leaving the loop closes the stream, even if the server never would.
        if (!continues()) return;
      }
    } catch (thrown) {
      if (thrown instanceof RangeError) this.tooLarge();
      throw thrown;
    }
  }
}

function isStream(response: Response): boolean {
  return response.headers.get("content-type")?.includes("text/event-stream") === true;
}

/** Headers of newer protocol versions, for proxies between client and server. */
function routingHeaders(message: JSONRPCMessage): Record<string, string> {
  if (!("method" in message) || !("id" in message)) return {};
  const name: unknown = message.params?.name;
  return {
    "mcp-method": message.method,
    // Names of tools that are offered are plain ASCII.
    ...(message.method === "tools/call" && typeof name === "string" ? { "mcp-name": name } : {}),
  };
}

/** Releases the socket of an unread body. */
function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined); // it may have ended already
}
