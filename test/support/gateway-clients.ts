// Official MCP clients of both lines, in front of a gateway.

import { join } from "node:path";
import { Client as NewClient, StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as OldTransport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { GatewayRun, GatewayServer, GatewayServerOptions } from "@sluice/gateway";
import { newGatewayToken, startGatewayServer } from "@sluice/gateway";
import { onTestFinished } from "vitest";
import { type FakeTool, refusedWith, said } from "./fake-gateway-run.ts";
import { BARE_ENV } from "./mcp.ts";

/** What a client's user does with a form. */
export type FormAnswer = {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Record<string, string>;
};

export interface ClientOptions {
  readonly name?: string;
  /** Makes the client one that shows forms. */
  readonly onForm?: (form: { readonly message: string }) => FormAnswer | Promise<FormAnswer>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (message: string | undefined) => void;
}

/** What the tests need of a client, of either line. */
export interface TestClient {
  readonly version: string | undefined;
  readonly instructions: string | undefined;
  tools(): Promise<readonly { name: string; annotations?: unknown; inputSchema: unknown }[]>;
  call(tool: string, args?: Record<string, unknown>, options?: CallOptions): Promise<TestResult>;
  request(method: string): Promise<unknown>;
  close(): Promise<void>;
}
export interface TestResult {
  readonly isError: boolean;
  readonly text: string;
  /** The text blocks of the answer, each with who wrote it as the gateway says. */
  readonly blocks: readonly { readonly text: string; readonly by: unknown }[];
}

/** How a client reaches the gateway. */
export type Way =
  | "sdk 1 over HTTP"
  | "sdk 1 over stdio"
  | "client 2, handshake, HTTP"
  | "client 2, 2026-07-28, HTTP"
  | "client 2, 2026-07-28, stdio";
export const WAYS: readonly Way[] = [
  "sdk 1 over HTTP",
  "sdk 1 over stdio",
  "client 2, handshake, HTTP",
  "client 2, 2026-07-28, HTTP",
  "client 2, 2026-07-28, stdio",
];

/** The tools of the fake run behind a gateway. */
export function wireTools(): Readonly<Record<string, FakeTool>> {
  return {
    Read: { run: ({ input }) => said(`read ${JSON.stringify(input)}`) },
    Bash: { effect: "write", run: () => refusedWith("The stage may not run this command. It may run: npm test.") },
    Deploy: { effect: "write", gated: true, run: () => said("deployed") },
    Slow: {
      run: ({ signal }) =>
        new Promise((resolve) => {
          if (signal === undefined) return;
          signal.addEventListener("abort", () => resolve(refusedWith("cancelled")), { once: true });
        }),
    },
    Count: {
      run: async () => {
        await new Promise((resolve) => void setTimeout(resolve, 40));
        return said("counted");
      },
    },
  };
}

export interface TestGateway extends GatewayServer {
  readonly token: string;
}

export async function gateway(
  run: GatewayRun,
  options: Partial<Omit<GatewayServerOptions, "run">> = {},
): Promise<TestGateway> {
  const token = newGatewayToken();
  const server = await startGatewayServer({ run, token, version: "0.0.0", patienceMs: 20, progressMs: 5, ...options });
  onTestFinished(() => server.close());
  return { ...server, token };
}

/** Over stdio, the client starts a gateway of its own. */
export async function connect(
  way: Way,
  server: TestGateway | undefined,
  options: ClientOptions = {},
): Promise<TestClient> {
  const at = server === undefined ? undefined : { url: new URL(`${server.url}/mcp`), headers: bearer(server) };
  const client = way.startsWith("sdk 1") ? await oldClient(at, options) : await newClient(way, at, options);
  onTestFinished(() => client.close());
  return client;
}

const FIXTURE = join(import.meta.dirname, "../fixtures/gateway/stdio.ts");
function stdioProcess() {
  return {
    command: process.execPath,
    args: ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning", FIXTURE],
    env: { ...BARE_ENV },
  };
}

interface Place {
  readonly url: URL;
  readonly headers: Record<string, string>;
}

async function oldClient(at: Place | undefined, { name = "old", onForm }: ClientOptions): Promise<TestClient> {
  const client = new OldClient(
    { name, version: "1.0.0" },
    { capabilities: onForm === undefined ? {} : { elicitation: {} } },
  );
  if (onForm !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({ ...(await onForm(params)) }));
  }
  const transport =
    at === undefined ? new OldStdio(stdioProcess()) : new OldHttp(at.url, { requestInit: { headers: at.headers } });
  await client.connect(withoutSession(transport));
  return {
    version: "2025-11-25",
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call: async (tool, args = {}, { signal, onProgress } = {}) => {
      const result = await client.callTool({ name: tool, arguments: args }, CallToolResultSchema, {
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : { onprogress: ({ message }) => onProgress(message) }),
      });
      return resultOf(result);
    },
    request: (method) => client.request({ method }, CallToolResultSchema),
    close: () => client.close(),
  };
}

async function newClient(
  way: Way,
  at: Place | undefined,
  { name = "new", onForm }: ClientOptions,
): Promise<TestClient> {
  const client = new NewClient(
    { name, version: "2.0.0" },
    {
      capabilities: onForm === undefined ? {} : { elicitation: { form: {} } },
      versionNegotiation: { mode: way.includes("handshake") ? "legacy" : { pin: "2026-07-28" } },
    },
  );
  if (onForm !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => ({ ...(await onForm(params)) }));
  }
  const transport =
    at === undefined ? new NewStdio(stdioProcess()) : new NewHttp(at.url, { requestInit: { headers: at.headers } });
  await client.connect(transport);
  return {
    version: client.getNegotiatedProtocolVersion(),
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call: async (tool, args = {}, { signal, onProgress } = {}) => {
      const result = await client.callTool(
        { name: tool, arguments: args },
        {
          ...(signal === undefined ? {} : { signal }),
          ...(onProgress === undefined ? {} : { onprogress: ({ message }) => onProgress(message) }),
        },
      );
      return resultOf(result);
    },
    request: (method) => client.request({ method }, CallToolResultSchema),
    close: () => client.close(),
  };
}

/** The transport without its optional members, which the package types in two ways. */
function withoutSession(inner: OldStdio | OldHttp): OldTransport {
  const outer: OldTransport = {
    start: async () => {
      inner.onmessage = (message) => outer.onmessage?.(message);
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      await inner.start();
    },
    send: (message) => inner.send(message),
    close: () => inner.close(),
    setProtocolVersion: (version) => {
      if ("setProtocolVersion" in inner) inner.setProtocolVersion(version);
    },
  };
  return outer;
}

function bearer({ token }: TestGateway): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

function resultOf(result: Readonly<Record<string, unknown>>): TestResult {
  const { content, isError } = CallToolResultSchema.parse(result);
  return {
    isError: isError === true,
    text: content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n"),
    blocks: content.flatMap((part) =>
      part.type === "text" ? [{ text: part.text, by: part._meta?.["sluice/by"] ?? "result" }] : [],
    ),
  };
}
