import type { Readable, Writable } from "node:stream";
import { StdioServerTransport, serveStdio as serveStdioConnection } from "@modelcontextprotocol/server/stdio";
import type { GatewayRun } from "../run/gateway-run-types.ts";
import {
  createMcpHub,
  createMcpServer,
  MAX_BODY_BYTES,
  type McpHub,
  type McpOptions,
  STDIO_SESSION,
} from "./mcp-server.ts";

export interface StdioOptions extends McpOptions {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  /** What is shared with the HTTP server of the same process. */
  readonly hub?: McpHub;
  readonly onError?: (error: Error) => void;
}

export interface StdioServer {
  /** Settles when the client closed the connection, or `close` did. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** Serves a run over stdio: all revisions, one connection, one agent. Nothing else may write to stdout. */
export function serveStdio(run: GatewayRun, options: StdioOptions): StdioServer {
  const { stdin = process.stdin, stdout = process.stdout, onError } = options;
  const hub = options.hub ?? createMcpHub(run, options);
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MAX_BODY_BYTES });
  const handle = serveStdioConnection(({ era }) => createMcpServer(hub, { kind: "stdio", era }), {
    transport,
    ...(onError === undefined ? {} : { onerror: onError }),
  });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const afterClose = transport.onclose;
  transport.onclose = () => {
    afterClose?.();
    hub.seat.leave(STDIO_SESSION);
    resolve();
  };
  return { closed, close: () => handle.close() };
}
