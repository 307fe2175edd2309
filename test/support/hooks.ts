import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type Clock,
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  type ToolCall,
  type ToolResult,
} from "@sluice/core";
import {
  type AdapterOptions,
  type GatewayRun,
  type HookProof,
  type HookRoutesOptions,
  type HostName,
  hookAdapter,
  hookRoutes,
  type NativeToolsOptions,
  nativeTools,
} from "@sluice/gateway";
import { onTestFinished } from "vitest";
import { type GatewaySetUp, gatewayRun, pipelineOf } from "./gateway.ts";

export interface HookServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the hooks of a run on a free port, without a token. */
export async function hookServer(
  run: HookRoutesOptions["run"],
  hosts: readonly HostName[],
  options: {
    readonly proof?: HookProof;
    readonly clock?: Clock;
    readonly adapter?: AdapterOptions;
    readonly port?: number;
  } = {},
): Promise<HookServer> {
  const { adapter = {}, port = 0, ...more } = options;
  const adapters = hosts.map((host) => hookAdapter(host, { mcpServers: ["lab"], ownServers: ["sluice"], ...adapter }));
  const routes = hookRoutes({ run, adapters, ...more });
  return await serve(async (path, body, req, res) => {
    const route = routes.find((one) => one.path === path);
    if (route === undefined) res.writeHead(404).end();
    else await route.handle(req, body, res);
  }, port);
}

type Handler = (path: string, body: Buffer, req: IncomingMessage, res: ServerResponse) => Promise<void>;

/** A server on the loopback interface, closed with the test. */
export async function serve(handle: Handler, port = 0): Promise<HookServer> {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("error", () => undefined); // a client may leave at any time
    req.on("end", () => {
      const [path = ""] = (req.url ?? "").split("?", 1);
      void handle(path, Buffer.concat(chunks), req, res);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  return { url: `http://127.0.0.1:${address.port}`, close };
}

/** A run whose calls the agent's own host carries out. */
export async function nativeRun(
  document: unknown,
  setUp: Omit<GatewaySetUp, "pipeline" | "native"> & { readonly tools?: Omit<NativeToolsOptions, "handOver"> },
): Promise<GatewayRun> {
  const { tools = {}, ...more } = setUp;
  return gatewayRun({
    ...more,
    pipeline: await pipelineOf(document),
    native: (handOver: (call: ToolCall, input: Json) => Promise<ToolResult>) => nativeTools({ ...tools, handOver }),
  });
}

/** Sends one event as a host does, and returns the answer's JSON. */
export async function send(server: HookServer, host: HostName, payload: Json, event?: string): Promise<JsonObject> {
  const query = event === undefined ? "" : `?event=${encodeURIComponent(event)}`;
  const response = await fetch(`${server.url}/hook/${host}${query}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(payload),
  });
  const text = await response.text();
  const answer = parseJson(text);
  if (response.status !== 200 || !answer.ok || !isJsonObject(answer.value))
    throw new Error(`${response.status}: ${text}`);
  return answer.value;
}
