import { isAbsolute, resolve } from "node:path";
import type { MCPClient } from "@ai-sdk/mcp";
import type { Clock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { McpSettings } from "../config.ts";
import type { ListedTool } from "../definition.ts";
import { HttpTransport } from "./http.ts";
import type { End, TransportOptions } from "./inbox.ts";
import type { McpSdk } from "./sdk.ts";
import { type ServerWall, wallServer } from "./server-wall.ts";
import { StdioTransport } from "./stdio.ts";

/** Pages of a tool list; the limit stops endless lists. */
const MOST_PAGES = 50;
const MOST_TOOLS = 1_000;

export interface ConnectionOptions {
  readonly settings: McpSettings;
  readonly sdk: McpSdk;
  readonly clock: Clock;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  readonly runId: string;
  /** Functions that kill running servers at once. */
  readonly kills: Set<() => void>;
  readonly notice: (message: string) => void;
  /** Aborts when the session closes. */
  readonly signal: AbortSignal;
  /** Undefined for a server outside the sandbox. */
  readonly wall: ServerWall | undefined;
}

/** A connection to a server after its handshake. */
export interface Connection {
  /** Why the connection ended; undefined while it is open. */
  readonly end: End | undefined;
  /** Number of messages received. */
  readonly heard: number;
  /** Whether the list of tools may have changed since it was last requested. */
  isStale(): boolean;
  list(signal: AbortSignal): Promise<readonly ListedTool[]>;
  call(name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown>;
  /** Closes the connection for this reason without waiting. */
  drop(end: End): void;
  close(): Promise<void>;
}

/** Connects to a server within its start timeout. Rejects with Error. */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { settings, sdk, clock, signal } = options;
  let end: End | undefined;
  let stale = true;
  const common = {
    maxMessageBytes: settings.maxMessageBytes,
    validate: sdk.validateJSONRPCMessage,
    notice: options.notice,
    changed: (): void => {
      stale = true;
    },
    ended: (why: End): void => {
      end = why;
    },
  };
  const transport = await transportTo(options, common);
  const kill = (): void => {
    if (transport instanceof StdioTransport) transport.kill();
  };
  options.kills.add(kill);
  const close = async (): Promise<void> => {
    await transport.close();
    options.kills.delete(kill);
  };
  const stop = new AbortController();
  const onClose = (): void => stop.abort(new Error("the session was closed"));
  signal.addEventListener("abort", onClose, { once: true });
  if (signal.aborted) onClose();
  const disarm = clock.after(settings.startTimeoutMs, () =>
    stop.abort(new Error(`it did not answer within ${settings.startTimeoutMs} ms`)),
  );
  let client: MCPClient;
  try {
    client = await sdk.createMCPClient({
      transport,
      clientName: "sluice",
      initializationOptions: { signal: stop.signal },
      // The transport has already answered or counted invalid messages.
      onUncaughtError: () => undefined,
    });
  } catch (thrown) {
    // The client closes the connection after a failure; that is not the cause.
    const before = end?.code === "closed" ? undefined : end?.message;
    const why = stop.signal.aborted ? messageOf(stop.signal.reason) : before;
    await close();
    const log =
      transport instanceof StdioTransport && transport.stderr !== "" ? `; its error output: ${transport.stderr}` : "";
    throw new Error(`${why ?? messageOf(thrown)}${log}`, { cause: thrown });
  } finally {
    disarm();
    signal.removeEventListener("abort", onClose);
  }

  return {
    get end() {
      return end;
    },
    get heard() {
      return transport.heard;
    },
    isStale: () => stale,
    list: async (signal) => {
      // Reset before the request, so that a change during the answer counts.
      stale = false;
      try {
        return await listAll(client, signal);
      } catch (thrown) {
        stale = true;
        throw thrown;
      }
    },
    call: (name, input, signal) => client.callTool({ name, arguments: { ...input }, options: { signal } }),
    drop: (why) => transport.end(why),
    close,
  };
}

async function transportTo(
  { settings: { config }, sdk, workspace, env, runId, wall }: ConnectionOptions,
  common: TransportOptions,
): Promise<StdioTransport | HttpTransport> {
  if ("url" in config) return new HttpTransport({ ...common, sdk, url: config.url, headers: config.headers ?? {} });
  const { command, args = [], cwd = ".", env: added = {} } = config;
  // A path is relative to the workspace; a bare name is looked up in PATH.
  const file = command.includes("/") && !isAbsolute(command) ? resolve(workspace, command) : command;
  const own = { file, args, cwd: resolve(workspace, cwd), env: { ...env, ...added } };
  const started = wall === undefined ? own : await wallServer(own, config, { root: workspace, wall });
  return new StdioTransport({ ...common, ...started, command: started.file, runId });
}

async function listAll(client: MCPClient, signal: AbortSignal): Promise<readonly ListedTool[]> {
  const tools: ListedTool[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await client.listTools({
      ...(cursor === undefined ? {} : { params: { cursor } }),
      options: { signal },
    });
    tools.push(...page.tools);
    cursor = page.nextCursor;
    if (tools.length > MOST_TOOLS) throw new Error(`it lists more than ${MOST_TOOLS} tools`);
    if (cursor !== undefined && (seen.has(cursor) || seen.size >= MOST_PAGES))
      throw new Error("its list of tools does not end");
    if (cursor !== undefined) seen.add(cursor);
  } while (cursor !== undefined);
  return tools;
}
