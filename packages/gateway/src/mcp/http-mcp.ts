import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { parseStoredJson } from "@sluice/core/runtime";
import { seatTaken } from "./agent-seat.ts";
import { clientLabel } from "./client.ts";
import { createMcpServer, type McpHub } from "./mcp-server.ts";
import type { Route } from "./route.ts";
import { sendWebResponse, toWebRequest } from "./web-request.ts";

export interface McpRoute {
  readonly route: Route;
  close(): Promise<void>;
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: Server;
}

/** MCP over streamable HTTP: requests of revision 2026-07-28, and the one session of the revisions with a handshake. */
export function createMcpRoute(hub: McpHub, onError: (error: Error) => void): McpRoute {
  const { seat } = hub;
  const modern = createMcpHandler(() => createMcpServer(hub, { kind: "request", era: "modern" }), {
    legacy: "reject",
    // The headers go out at once, so that a client does not time out while a person decides.
    responseMode: "sse",
    onerror: onError,
    maxSubscriptions: 8,
  });
  const sessions = new Map<string, Session>();

  const close = (id: string): void => {
    const session = sessions.get(id);
    sessions.delete(id);
    seat.leave(id);
    session?.server.close().catch(onError);
  };

  const begin = async (request: Request, body: unknown, label: string): Promise<Response> => {
    const id = randomUUID();
    const seating = seat.begin(id, label, () => close(id));
    if (!seating.ok) return rpcError(200, -32_000, seatTaken(seating.holder), idOf(body));
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => close(id),
    });
    const server = createMcpServer(hub, {
      kind: "session",
      era: "legacy",
      id,
      endStream: (call) => transport.closeSSEStream(call),
    });
    sessions.set(id, { transport, server });
    await server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: body });
    // A request that the transport refused began no session.
    if (!response.ok) close(id);
    return response;
  };

  const inSession = (request: Request, body: unknown, res: ServerResponse): Promise<Response> => {
    const id = request.headers.get("mcp-session-id");
    if (id === null) return Promise.resolve(rpcError(400, -32_000, "Begin a session with initialize.", idOf(body)));
    const session = sessions.get(id);
    if (session === undefined) return Promise.resolve(rpcError(404, -32_001, "Session not found", idOf(body)));
    res.once("close", seat.use(request.method === "GET" ? "stream" : "request"));
    return session.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
  };

  const respond = async (request: Request, body: unknown, res: ServerResponse): Promise<Response> => {
    if (request.method !== "POST") return inSession(request, undefined, res);
    // Newer revisions have no batches; one could hide a request from the checks below.
    if (Array.isArray(body)) return rpcError(400, -32_600, "Batches are not served.", null);
    if (!(await isLegacyRequest(request, body))) return modern.fetch(request, { parsedBody: body });
    return isInitializeRequest(body)
      ? begin(request, body, clientLabel(body.params.clientInfo))
      : inSession(request, body, res);
  };

  return {
    route: {
      path: "/mcp",
      handle: async (req: IncomingMessage, body: Buffer, res: ServerResponse) => {
        const request = toWebRequest(req, body, res, "http://127.0.0.1");
        const parsed = request.method === "POST" ? parseStoredJson(body.toString("utf8")) : undefined;
        const response =
          parsed?.ok === false
            ? rpcError(400, -32_700, `The body is not JSON: ${parsed.fault}`, null)
            : await respond(request, parsed?.value, res);
        await sendWebResponse(response, res);
      },
    },
    close: async () => {
      for (const id of [...sessions.keys()]) close(id);
      await modern.close();
    },
  };
}

function idOf(body: unknown): string | number | null {
  if (typeof body !== "object" || body === null || !("id" in body)) return null;
  return typeof body.id === "string" || typeof body.id === "number" ? body.id : null;
}

function rpcError(status: number, code: number, message: string, id: string | number | null): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id }, { status });
}
