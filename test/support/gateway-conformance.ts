import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { onTestFinished } from "vitest";
import { type FakeTool, refusedWith, said } from "./fake-gateway-run.ts";
import type { TestGateway } from "./gateway-clients.ts";
import { BARE_ENV } from "./mcp.ts";
import { tempFolder } from "./tools.ts";

const SUITE = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** The schema that the suite expects to come back unchanged. */
const SCHEMA_2020_12: JsonObject = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
  additionalProperties: false,
};

/** The tools that the suite calls. */
export function conformanceTools(): Readonly<Record<string, FakeTool>> {
  return {
    test_simple_text: { run: () => said("This is a simple text response for testing.") },
    test_error_handling: { run: () => refusedWith("This tool intentionally returns an error for testing") },
    test_tool_with_progress: {
      run: async () => {
        await new Promise((resolve) => void setTimeout(resolve, 150));
        return said("done");
      },
    },
    test_elicitation: { effect: "write", gated: true, run: () => said("approved") },
    json_schema_2020_12_tool: { inputSchema: SCHEMA_2020_12 },
  };
}

/**
 * Passes everything on with the token of a run, which the suite cannot send. Each session gets a gateway of its own: clients of
 * failed scenarios stay connected, and one agent works on a run.
 */
export async function withTokens(open: () => Promise<TestGateway>): Promise<string> {
  const bySession = new Map<string, TestGateway>();
  const proxy = createServer((incoming, response) => {
    const session = incoming.headers["mcp-session-id"];
    const known = typeof session === "string" ? bySession.get(session) : undefined;
    void (known === undefined ? open() : Promise.resolve(known)).then((server) => {
      const headers = { ...incoming.headers, authorization: `Bearer ${server.token}` };
      const { port } = new URL(server.url);
      const passed = request(
        { host: "127.0.0.1", port, method: incoming.method, path: incoming.url, headers },
        (answer) => {
          const begun = answer.headers["mcp-session-id"];
          if (typeof begun === "string") bySession.set(begun, server);
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        },
      );
      passed.on("error", () => response.destroy());
      response.on("close", () => passed.destroy());
      incoming.pipe(passed);
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const address = proxy.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

/** Runs all scenarios of the suite for servers: whether each passed. */
export async function conformance(url: string): Promise<ReadonlyMap<string, boolean>> {
  const child = spawn(process.execPath, [SUITE, "server", "--url", url, "--suite", "all"], {
    cwd: tempFolder().root,
    env: { ...BARE_ENV, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += String(chunk);
  });
  await once(child, "close");
  return new Map(
    [...output.matchAll(/^([✓✗]) ([\w-]+): /gm)].map(([, mark, name]) => [name ?? "", mark === "✓"] as const),
  );
}
