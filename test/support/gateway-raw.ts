// Requests to a gateway that no client would send.
import { request } from "node:http";
import { connect } from "node:net";
import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import type { TestGateway } from "./gateway-clients.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The JSON-RPC message of the answer, from a body or from the last event of a stream. */
  readonly message: JsonObject;
}

export interface RawRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
  /** Ends as soon as the headers are there. */
  readonly headersOnly?: boolean;
}

/** Sends one request with the run's token; a header of `undefined` is left out. */
export function raw(server: TestGateway, given: RawRequest = {}): Promise<RawAnswer> {
  const { method = "POST", path = "/mcp", body = "", signal, headersOnly = false } = given;
  const all: Readonly<Record<string, string | undefined>> = {
    authorization: `Bearer ${server.token}`,
    accept: "application/json, text/event-stream",
    ...(method === "POST" ? { "content-type": "application/json" } : {}),
    ...given.headers,
  };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(all)) if (value !== undefined) headers[name] = value;
  const { port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, method, path, headers, agent: false, ...(signal === undefined ? {} : { signal }) },
      (answer) => {
        const done = (text: string): void =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, message: messageIn(text) });
        if (headersOnly) {
          done("");
          return;
        }
        let text = "";
        answer.on("data", (chunk: Buffer) => {
          text += String(chunk);
        });
        answer.on("end", () => done(text));
        answer.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

function messageIn(text: string): JsonObject {
  const last = text.split("\n").findLast((line) => line.startsWith("data: {"));
  const parsed = parseJson(last === undefined ? text : last.slice("data: ".length));
  return parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
}

/** Sends bytes as they are, and returns all that came back until the connection ended. */
export function bytes(server: TestGateway, sent: string): Promise<string> {
  const { port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => void socket.write(sent));
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += String(chunk);
    });
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
  });
}

const VERSION = "2026-07-28";

export interface ModernRequest {
  readonly name?: string;
  readonly elicits?: boolean;
  readonly params?: JsonObject;
}

/** A request of revision 2026-07-28. */
export function modern(
  server: TestGateway,
  method: string,
  { name = "raw", elicits = false, params = {} }: ModernRequest = {},
): Promise<RawAnswer> {
  const tool = params.name;
  return raw(server, {
    headers: {
      "mcp-protocol-version": VERSION,
      "mcp-method": method,
      ...(typeof tool === "string" ? { "mcp-name": tool } : {}),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": VERSION,
          "io.modelcontextprotocol/clientInfo": { name, version: "1" },
          "io.modelcontextprotocol/clientCapabilities": elicits ? { elicitation: { form: {} } } : {},
        },
      },
    }),
  });
}

/** A call of revision 2026-07-28. */
export function modernCall(
  server: TestGateway,
  tool: string,
  args: Json = {},
  { more = {}, ...options }: ModernRequest & { readonly more?: JsonObject } = {},
): Promise<RawAnswer> {
  return modern(server, "tools/call", { ...options, params: { name: tool, arguments: args, ...more } });
}

/** Begins a session of an older revision; the answer, and the session's id. */
export async function handshake(
  server: TestGateway,
  { name = "raw", version = "2025-11-25", id = undefined as string | undefined } = {},
): Promise<RawAnswer & { readonly session: string }> {
  const answer = await raw(server, {
    headers: { "mcp-session-id": id },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: version, capabilities: {}, clientInfo: { name, version: "1" } },
    }),
  });
  return { ...answer, session: String(answer.headers["mcp-session-id"] ?? "") };
}

/** A request in a session. */
export function inSession(server: TestGateway, session: string, method: string, params: Json = {}): Promise<RawAnswer> {
  return raw(server, {
    headers: { "mcp-session-id": session },
    body: JSON.stringify({ jsonrpc: "2.0", id: 2, method, params }),
  });
}
