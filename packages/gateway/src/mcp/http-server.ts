import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  validateHostHeader,
  validateOriginHeader,
} from "@modelcontextprotocol/server";
import { type Clock, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { GatewayRun } from "../run/gateway-run-types.ts";
import { createMcpRoute } from "./http-mcp.ts";
import { createMcpHub, MAX_BODY_BYTES, type McpHub, type McpOptions } from "./mcp-server.ts";
import type { Route } from "./route.ts";
import { carriesToken, checkGatewayToken } from "./token.ts";

export interface GatewayServerOptions extends McpOptions {
  readonly run: GatewayRun;
  /** Names the run: a caller that has it acts as the run's agent. See `newGatewayToken`. */
  readonly token: string;
  /** Paths besides `/mcp`. */
  readonly routes?: readonly Route[];
  /** Default: a free port. */
  readonly port?: number;
  /** What is shared with the stdio server of the same process. */
  readonly hub?: McpHub;
  /** Faults of the server itself, which clients do not see. */
  readonly onError?: (error: Error) => void;
}

export interface GatewayServer {
  /** `http://127.0.0.1:<port>`; MCP is at `/mcp`. */
  readonly url: string;
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 128;

/** How long a server that closes waits for the answers in flight: those of a run that has just ended are about to be written. */
const DRAIN_MS = 1_000;

/** Serves a run on the loopback interface. */
export async function startGatewayServer(options: GatewayServerOptions): Promise<GatewayServer> {
  const { run, token, routes = [], port = 0, clock = systemClock, onError = () => undefined } = options;
  checkGatewayToken(token);
  const mcp = createMcpRoute(options.hub ?? createMcpHub(run, options), onError);
  const byPath = new Map([...routes, mcp.route].map((route) => [route.path, route]));

  const inFlight = new Set<Promise<void>>();
  const server = createServer(
    { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000 },
    (req, res) => {
      const served = serve(req, res, token, byPath).catch((thrown: unknown) => {
        onError(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
        if (res.headersSent) res.destroy();
        else refuse(res, 500, "The gateway failed to answer.");
      });
      // A stream of notifications has no answer to wait for.
      if (req.method !== "GET") {
        inFlight.add(served);
        void served.finally(() => inFlight.delete(served));
      }
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, port);
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${bound}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      await drained(inFlight, clock);
      await mcp.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}

/** Settles when no answer is in flight, or the time is over. */
async function drained(inFlight: ReadonlySet<Promise<void>>, clock: Clock): Promise<void> {
  const over = Promise.withResolvers<void>();
  const disarm = clock.after(DRAIN_MS, over.resolve);
  await Promise.race([Promise.all(inFlight), over.promise]);
  disarm();
}

async function serve(
  req: IncomingMessage,
  res: ServerResponse,
  token: string,
  routes: ReadonlyMap<string, Route>,
): Promise<void> {
  // Only pages of other sites, and names that were made to point here, send another Host or Origin.
  const { host, origin, authorization } = req.headers;
  if (!validateHostHeader(host, localhostAllowedHostnames()).ok) return refuse(res, 403, "This Host is not served.");
  if (!validateOriginHeader(origin, localhostAllowedOrigins()).ok)
    return refuse(res, 403, "This Origin is not served.");
  if (!carriesToken(authorization, token)) {
    res.setHeader("WWW-Authenticate", "Bearer");
    return refuse(res, 401, "The token of the run is missing or wrong.");
  }
  const route = routes.get((req.url ?? "").split("?", 1)[0] ?? "");
  if (route === undefined) return refuse(res, 404, "Nothing is served at this path.");
  const body = await readBody(req);
  if (body === undefined) return refuse(res, 413, `A request has at most ${MAX_BODY_BYTES} bytes.`);
  await route.handle(req, body, res);
}

/** The body, or undefined if it is too large; then the rest is not read. */
async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(req.headers["content-length"] ?? 0) > MAX_BODY_BYTES) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** Answers an error in the shape that MCP clients show. The connection ends, so that an unread body costs nothing. */
function refuse(res: ServerResponse, status: number, message: string): void {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code: -32_000, message }, id: null });
  res.writeHead(status, { "Content-Type": "application/json", Connection: "close" });
  res.end(body);
}
