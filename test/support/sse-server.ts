import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";

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

/** What services refuse or fail with, each in its own words. */
export type Trouble = "key" | "rate" | "overload" | "request" | "overflow";

/** What the server answers to one request. All of it is optional: `{}` is an answer that says nothing. */
export interface ServerReply {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly ServerCall[];
  /** Reasoning once more, as the last thing that is said. */
  readonly afterthought?: string;
  /** `length` and `filter` in the provider's own words, any other word as it is; derived from the calls when omitted. */
  readonly stop?: string;
  /** `none` leaves usage out where the protocol allows it. */
  readonly usage?: ServerUsage | "none";
  /** Refuses the request, in the provider's own words. */
  readonly refuse?: Trouble;
  /** With `refuse`: how long the provider asks to wait, said where it says so. */
  readonly retryAfterSeconds?: number;
  /** An error event in the provider's own words after the content, in the middle of the stream. */
  readonly fail?: Trouble;
  /** Refuses the request with this HTTP status. */
  readonly status?: number;
  /** Body of a refusal with a `status`. */
  readonly error?: { readonly type?: string; readonly code?: string; readonly message: string };
  /** Sent instead of the provider's error shape, as a proxy would. */
  readonly rawBody?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Breaks the connection after so many events, or at the event that holds this text: behind it, or in its middle. */
  readonly cutAfterEvents?: number;
  readonly cutAfter?: string;
  readonly cutInside?: string;
  /** `end` closes the response in order instead of breaking the connection. */
  readonly cutBy?: "reset" | "end";
  /** Makes the data of the event that holds this text something that is not JSON. */
  readonly malformedAt?: string;
  /** Waits for this before event `holdAtEvent`, behind the event that holds `holdAfter`, or else before the status line. */
  readonly hold?: Promise<unknown>;
  readonly holdAtEvent?: number;
  readonly holdAfter?: string;
  /** Waited for before each event. */
  readonly pace?: (event: number) => Promise<unknown> | undefined;
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
  readonly code?: string | number;
  readonly retryAfterSeconds?: number;
}

/** What makes one provider's protocol differ from another's. */
export interface Dialect {
  /** With the query, if there is one. */
  readonly path: string;
  /** How it says each trouble. */
  readonly troubles: Readonly<Record<Trouble, Refusal>>;
  /** Where it says how long to wait: in the usual header unless this is set. */
  readonly retryAfterInBody?: true;
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
    if (reply.holdAtEvent === undefined && reply.holdAfter === undefined) await reply.hold;
    if (reply.refuse !== undefined) {
      const { retryAfterSeconds } = reply;
      const waits = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
      const trouble = { ...dialect.troubles[reply.refuse], ...waits };
      const header: Record<string, string> =
        retryAfterSeconds === undefined || dialect.retryAfterInBody ? {} : { "retry-after": String(retryAfterSeconds) };
      return refuse(response, trouble.status, dialect.errorBody(trouble), { ...header, ...reply.headers });
    }
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

/** The provider's word for how the answer ended: `stops` translates ours. */
export function stopWord(
  reply: ServerReply,
  stops: { readonly length: string; readonly filter: string },
  ended: string,
) {
  if (reply.stop === "length" || reply.stop === "filter") return stops[reply.stop];
  return reply.stop ?? ended;
}

/** A member that should be a list; empty when it is not. */
export function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list. */
export function objects(value: Json | undefined): readonly JsonObject[] {
  return list(value).filter((each): each is JsonObject => isJsonObject(each));
}

/** The first member that is none of those the service knows, as it would name it; undefined when all are known. */
export function unknownMember(value: JsonObject, known: readonly string[]): string | undefined {
  return Object.keys(value).find((name) => !known.includes(name));
}

/** Whether a text is missing or says nothing. */
export function blank(text: unknown): boolean {
  return typeof text !== "string" || text.trim() === "";
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
  const { malformedAt } = reply;
  if (malformedAt === undefined) return wire;
  return wire.map((event) => (event.includes(malformedAt) ? event.replace(/data: .*/, 'data: {"type":"cont') : event));
}

async function stream(response: ServerResponse, reply: ServerReply, events: readonly string[]): Promise<void> {
  const holds = (event: string, text: string | undefined): boolean => text !== undefined && event.includes(text);
  for (const [index, event] of events.entries()) {
    if (index === reply.cutAfterEvents) return cut(response, reply);
    if (index === reply.holdAtEvent) await reply.hold;
    await reply.pace?.(index);
    if (response.destroyed) return;
    const inside = holds(event, reply.cutInside);
    await write(response, inside ? event.slice(0, event.length / 2) : event);
    if (inside || holds(event, reply.cutAfter)) return cut(response, reply);
    if (holds(event, reply.holdAfter)) await reply.hold;
  }
  response.end();
}

function write(response: ServerResponse, data: string): Promise<void> {
  return new Promise((resolve) => {
    // A client that has gone is not a fault of the test.
    response.write(data, () => resolve());
  });
}

function cut(response: ServerResponse, reply: ServerReply): void {
  if (reply.cutBy === "end") response.end();
  else response.socket?.destroy();
}
