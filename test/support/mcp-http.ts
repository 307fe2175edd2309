import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { onTestFinished } from "vitest";
import { BARE_ENV, EVERYTHING } from "./mcp.ts";

/** The reference server over streamable HTTP, on a port of its own. */
export async function startEverything(): Promise<string> {
  const preload = join(import.meta.dirname, "../fixtures/mcp/say-port.mjs");
  const child = spawn(process.execPath, ["--import", preload, EVERYTHING, "streamableHttp"], {
    env: { ...BARE_ENV, PORT: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const chunk of child.stderr) {
    const port = /^port (\d+)$/m.exec(String(chunk))?.[1];
    if (port !== undefined) return `http://127.0.0.1:${port}/mcp`;
  }
  throw new Error("the reference server did not start");
}

/** What came to a server, in order. */
interface HttpRequest {
  readonly verb: string;
  readonly headers: IncomingMessage["headers"];
  readonly message: JsonObject;
}
export interface HttpServer {
  readonly url: string;
  readonly requests: readonly HttpRequest[];
  /** The methods of the messages, and the verbs of requests without one. */
  said(): readonly string[];
}
/** Answers one request; false leaves it to the server, which behaves. */
export type Answer = (request: HttpRequest, response: ServerResponse) => boolean;

/** A server over streamable HTTP that behaves but for what `answer` does. */
export async function startHttpServer(answer: Answer = () => false): Promise<HttpServer> {
  const requests: HttpRequest[] = [];
  const server = createServer((incoming, response) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => {
      body += String(chunk);
    });
    incoming.on("end", () => {
      const parsed = parseJson(body);
      const message = parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
      const request = { verb: incoming.method ?? "", headers: incoming.headers, message };
      requests.push(request);
      if (!answer(request, response)) behave(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const said = (): readonly string[] =>
    requests.map(({ verb, message }) => (typeof message.method === "string" ? message.method : verb));
  return { url: `http://127.0.0.1:${port}/mcp`, requests, said };
}

export function sendJson(
  response: ServerResponse,
  value: Json,
  status = 200,
  headers: Record<string, string> = {},
): true {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
  return true;
}

const tool = (name: string): Json => ({
  name,
  description: "A tool.",
  inputSchema: { type: "object", properties: {} },
});

function behave({ verb, message }: HttpRequest, response: ServerResponse): void {
  const { id = null, method } = message;
  const result = (value: Json, headers?: Record<string, string>): true =>
    sendJson(response, { jsonrpc: "2.0", id, result: value }, 200, headers);
  if (verb === "GET") sendJson(response, {}, 405);
  else if (verb === "DELETE" || message.id === undefined) response.writeHead(202).end();
  else if (method === "initialize") {
    const serverInfo = { name: "loopback", version: "1" };
    const capabilities = { tools: { listChanged: true } };
    result({ protocolVersion: "2025-11-25", capabilities, serverInfo }, { "mcp-session-id": "s1" });
  } else if (method === "tools/list") result({ tools: [tool("act"), tool("look")] });
  else if (method === "tools/call") result({ content: [{ type: "text", text: "done" }] });
  else sendJson(response, { jsonrpc: "2.0", id, error: { code: -32_601, message: "no such method" } });
}
