import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { Json, JsonObject } from "@sluice/core";

/** A tool call the server makes: arguments as a value, or as the very characters of the stream. */
export interface ServerCall {
  readonly id?: string;
  readonly name: string;
  readonly input?: Json;
  readonly rawInput?: string;
}

interface ServerUsage {
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** What the server answers to one request. All of it is optional: `{}` is an answer that says nothing. */
export interface ServerReply {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ServerCall[];
  /** The provider's own word; derived from the calls when omitted. */
  readonly stop?: string;
  /** `none` leaves usage out where the protocol allows it. */
  readonly usage?: ServerUsage | "none";
  /** Refuses the request with this HTTP status. */
  readonly status?: number;
  /** Body of a refusal; without a status, an error event after the content, in the middle of the stream. */
  readonly error?: { readonly type?: string; readonly code?: string; readonly message: string };
  /** Sent instead of the provider's error shape, as a proxy would. */
  readonly rawBody?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Breaks the connection after so many events, or so many bytes of the body. */
  readonly cutAfterEvents?: number;
  readonly cutAfterBytes?: number;
  /** `end` closes the response in order instead of breaking the connection. */
  readonly cutBy?: "reset" | "end";
  /** Makes the data of this event (from 0) something that is not JSON. */
  readonly malformedEvent?: number;
  /** Waits for this before event `holdAtEvent`, or before the status line when that is omitted. */
  readonly hold?: Promise<unknown>;
  readonly holdAtEvent?: number;
  /** The last word on what goes over the wire. */
  readonly events?: (events: readonly string[]) => readonly string[];
}

export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
  /** Resolves when the client has gone before the answer was complete. */
  readonly disconnected: Promise<void>;
}

/** Replies in order, or a function of the request and its number (from 0). */
export type Replies =
  | readonly ServerReply[]
  | ((request: RecordedRequest, n: number) => ServerReply | Promise<ServerReply>);

export interface ModelServer extends AsyncDisposable {
  /** Without a path: `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Every request that came, in order, whatever was answered. */
  readonly requests: readonly RecordedRequest[];
  close(): Promise<void>;
}

/** Why a request is refused, as the real service would. */
export interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly code?: string;
}

/** What makes one provider's protocol differ from another's. */
export interface Dialect {
  readonly path: string;
  check(request: RecordedRequest): Refusal | undefined;
  events(reply: ServerReply, request: RecordedRequest, n: number): string[];
  errorBody(refusal: Refusal): string;
}

export async function startModelServer(dialect: Dialect, replies: Replies): Promise<ModelServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((fault: unknown) => {
      response.destroy(fault instanceof Error ? fault : new Error(String(fault)));
    });
  });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(incoming);
    const disconnected = new Promise<void>((resolve) => {
      response.once("close", () => {
        if (!response.writableFinished) resolve();
      });
    });
    const request: RecordedRequest = {
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: JSON.parse(text),
      disconnected,
    };
    const n = requests.push(request) - 1;
    const refusal =
      request.path === dialect.path
        ? dialect.check(request)
        : { status: 404, type: "not_found_error", message: `no such path: ${request.path}` };
    if (refusal !== undefined) return refuse(response, refusal.status, dialect.errorBody(refusal));

    const reply = typeof replies === "function" ? await replies(request, n) : replies[n];
    if (reply === undefined) {
      const message = `the test scripted ${n} replies and this is one more`;
      return refuse(response, 400, dialect.errorBody({ status: 400, type: "invalid_request_error", message }));
    }
    if (reply.hold !== undefined && reply.holdAtEvent === undefined) await reply.hold;
    if (reply.status !== undefined) {
      const { type = "api_error", message = "scripted failure", code } = reply.error ?? {};
      const shape = { status: reply.status, type, message, ...(code === undefined ? {} : { code }) };
      return refuse(response, reply.status, reply.rawBody ?? dialect.errorBody(shape), reply.headers);
    }
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache", ...reply.headers });
    response.flushHeaders();
    await stream(response, reply, broken(dialect.events(reply, request, n), reply));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return { url: `http://127.0.0.1:${address.port}`, requests, close, [Symbol.asyncDispose]: close };
}

/** One server-sent event. */
export function sse(data: Json, event?: string): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** A text in at most three pieces, so that clients have to put it together. */
export function pieces(text: string): string[] {
  const size = Math.max(1, Math.ceil(text.length / 3));
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += size) parts.push(text.slice(at, at + size));
  return parts;
}

/** A member that should be a string; "" when it is not. */
export function word(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function argumentsOf(call: ServerCall): string {
  return call.rawInput ?? JSON.stringify(call.input ?? {});
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function refuse(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const type = body.startsWith("{") ? "application/json" : "text/html";
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(body);
}

function broken(events: readonly string[], reply: ServerReply): readonly string[] {
  const wire = reply.events?.(events) ?? events;
  return wire.map((event, index) =>
    index === reply.malformedEvent ? event.replace(/data: .*/, 'data: {"type":"cont') : event,
  );
}

async function stream(response: ServerResponse, reply: ServerReply, events: readonly string[]): Promise<void> {
  let bytes = 0;
  for (const [index, event] of events.entries()) {
    if (index === reply.cutAfterEvents) return cut(response, reply);
    if (index === reply.holdAtEvent) await reply.hold;
    if (response.destroyed) return;
    const data = Buffer.from(event);
    const left = (reply.cutAfterBytes ?? Number.POSITIVE_INFINITY) - bytes;
    if (data.length >= left) {
      await write(response, data.subarray(0, left));
      return cut(response, reply);
    }
    bytes += data.length;
    await write(response, data);
  }
  response.end();
}

function write(response: ServerResponse, data: Buffer): Promise<void> {
  return new Promise((resolve) => {
    // A client that has gone is not a fault of the test.
    response.write(data, () => resolve());
  });
}

function cut(response: ServerResponse, reply: ServerReply): void {
  if (reply.cutBy === "end") response.end();
  else response.socket?.destroy();
}
