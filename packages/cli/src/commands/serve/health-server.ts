import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { isLoopbackHost, type LoopbackAddress } from "./loopback.ts";

export interface HealthServer {
  /** Where it listens, such as `http://127.0.0.1:9464`. */
  readonly url: string;
  close(): Promise<void>;
}

export interface HealthAnswers {
  /** Whether the worker takes runs. */
  readonly isHealthy: () => boolean;
  /** The text of `/metrics`. */
  readonly metrics: () => string;
}

/** Longer requests are cut off: no honest one is long. */
const REQUEST_MS = 5_000;
const MOST_CONNECTIONS = 32;
const MOST_HEADER_BYTES = 8 * 1024;
const TEXT = "text/plain; charset=utf-8";
/** The Prometheus text format. */
const METRICS = "text/plain; version=0.0.4; charset=utf-8";

/** Serves `GET /healthz` and `GET /metrics` on a loopback address. Throws Host `metrics_address` if the address cannot be used. */
export async function startHealthServer(address: LoopbackAddress, answers: HealthAnswers): Promise<HealthServer> {
  const server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, maxHeaderSize: MOST_HEADER_BYTES },
    (request, response) => answer(request, response, answers),
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.keepAliveTimeout = REQUEST_MS;
  await listening(server, address);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, { host, port }: LoopbackAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (thrown) => {
      const message = `metrics cannot listen on ${host}:${port} (${messageOf(thrown)}); name another address with --metrics, or use --no-metrics`;
      reject(new SluiceError("Host", "metrics_address", message, { cause: thrown }));
    });
    server.listen({ host, port, exclusive: true }, () => {
      // A connection that fails later concerns its client only.
      server.removeAllListeners("error").on("error", () => undefined);
      resolve();
    });
  });
}

function answer(request: IncomingMessage, response: ServerResponse, answers: HealthAnswers): void {
  const [status, text, type = TEXT] = answerTo(request, answers);
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status === 405 ? { allow: "GET" } : {}),
  });
  response.end(text);
}

function answerTo(
  { headers, method, url = "" }: IncomingMessage,
  { isHealthy, metrics }: HealthAnswers,
): readonly [status: number, text: string, type?: string] {
  if (!isLoopbackHost(headers.host)) return [403, "the Host header names no loopback address\n"];
  if (method !== "GET") return [405, "only GET\n"];
  switch (url.split("?", 1)[0]) {
    case "/healthz":
      return isHealthy() ? [200, "ok\n"] : [503, "draining\n"];
    case "/metrics":
      return [200, metrics(), METRICS];
    default:
      return [404, "only /healthz and /metrics\n"];
  }
}
