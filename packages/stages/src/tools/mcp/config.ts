import type { Problem } from "@sluice/core";
import { problemsError, shape } from "@sluice/core/runtime";
import { readHttpAddress } from "../../models/providers/http-url.ts";
import { serverNameFault } from "./names.ts";

/** Settings of every MCP server, however it is reached. */
export interface McpServerLimits {
  /**
   * Its tools that only read, by the server's names; `*` matches any characters. All others count as writing, whatever the server
   * declares: they run alone, behind an open record, and are never repeated after a crash.
   */
  readonly reads?: readonly string[];
  /** Whether runs start without its tools if the server fails to start. Default: false, the run does not start. */
  readonly optional?: boolean;
  /** Milliseconds to start and list its tools. Default: 60,000. */
  readonly startTimeoutMs?: number;
  /** Milliseconds for one call. Default: 120,000. */
  readonly callTimeoutMs?: number;
  /** Bytes of one message from it. Default: 8 MB. A longer one closes the connection and fails the waiting call. */
  readonly maxMessageBytes?: number;
  /** How often in a row it is restarted after it ended. Default: 3. An answered call resets the count. */
  readonly restarts?: number;
}

/** A program that speaks MCP over standard input and output. It runs as long as the session. */
export interface McpStdioServer extends McpServerLimits {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the environment of child processes, which contains no secrets. Values that look like keys are redacted. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working folder, relative to the workspace, which is the default. */
  readonly cwd?: string;
  /** False starts it outside the sandbox, which the run reports. */
  readonly sandbox?: boolean;
  /** Whether it reaches the network from the sandbox. Default: true. */
  readonly network?: boolean;
}

/** A server that speaks MCP over streamable HTTP. */
export interface McpHttpServer extends McpServerLimits {
  readonly url: string;
  /** Sent with every request, to this address only: redirects are refused. Keys in them are redacted. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type McpServerConfig = McpStdioServer | McpHttpServer;
/** MCP servers by name. The name is part of the names of their tools: `mcp__<name>__<tool>`. */
export type McpServers = Readonly<Record<string, McpServerConfig>>;

/** A server's settings with all defaults. */
export interface McpSettings {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly reads: readonly string[];
  readonly optional: boolean;
  readonly startTimeoutMs: number;
  readonly callTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly restarts: number;
}

const ms = shape.integer({ min: 1, max: 86_400_000 });
const text = shape.holding(shape.text(), (value) => !value.includes("\0"), "contains a NUL character");
const word = shape.holding(shape.text({ min: 1 }), (value) => !value.includes("\0"), "contains a NUL character");
const limits = {
  reads: shape.optional(shape.list(shape.text({ min: 1, max: 128 }), { max: 500 })),
  optional: shape.optional(shape.flag()),
  startTimeoutMs: shape.optional(ms),
  callTimeoutMs: shape.optional(ms),
  maxMessageBytes: shape.optional(shape.integer({ min: 1_024, max: 256 * 1024 * 1024 })),
  restarts: shape.optional(shape.integer({ min: 0, max: 100 })),
};
const stdio = shape.object({
  command: word,
  args: shape.optional(shape.list(text)),
  env: shape.optional(shape.mapOf(text, { regex: /^[^=\0]+$/, message: "is not a variable name" })),
  cwd: shape.optional(word),
  sandbox: shape.optional(shape.flag()),
  network: shape.optional(shape.flag()),
  ...limits,
});
const http = shape.object({
  url: shape.holding(
    shape.text(),
    (url) => readHttpAddress(url).ok,
    "is not an http(s) URL without a user name and password",
  ),
  headers: shape.optional(
    shape.mapOf(shape.text({ pattern: { regex: /^[\t\x20-\x7e\x80-\xff]*$/, message: "is not a header value" } }), {
      regex: /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/,
      message: "is not a header name",
    }),
  ),
  ...limits,
});

/** The settings of each server. Throws Validation `mcp_servers_invalid` with all problems, but never with a value. */
export function readMcpServers(servers: McpServers): readonly McpSettings[] {
  const problems: Problem[] = [];
  for (const [name, config] of Object.entries(servers)) {
    const named = serverNameFault(name);
    if (named !== undefined) problems.push({ path: `mcpServers[${JSON.stringify(name)}]`, message: named });
    for (const { path, message } of faultsOf(config))
      problems.push({ path: `mcpServers.${[name, ...path].join(".")}`, message });
  }
  if (problems.length > 0) throw problemsError("mcp_servers_invalid", "These MCP servers cannot be used:", problems);
  return Object.entries(servers).map(([name, config]) => settingsOf(name, config));
}

function settingsOf(name: string, config: McpServerConfig): McpSettings {
  const { reads = [], optional = false, startTimeoutMs = 60_000, callTimeoutMs = 120_000 } = config;
  const { maxMessageBytes = 8 * 1024 * 1024, restarts = 3 } = config;
  return { name, config, reads, optional, startTimeoutMs, callTimeoutMs, maxMessageBytes, restarts };
}

function faultsOf(config: unknown): readonly shape.ShapeIssue[] {
  if (typeof config !== "object" || config === null)
    return [{ path: [], message: "must be an object with command or url" }];
  if ("command" in config === "url" in config)
    return [{ path: [], message: "must have either a command to start, or the url of a running server" }];
  const issues: shape.ShapeIssue[] = [];
  ("url" in config ? http : stdio).fits(config, issues);
  return issues;
}
