import { isAbsolute, resolve } from "node:path";
import type { MCPClient } from "@ai-sdk/mcp";
import { type Clock, messageOf } from "@sluice/core";
import type { McpSettings } from "../config.ts";
import type { ListedTool } from "../definition.ts";
import { HttpTransport } from "./http.ts";
import type { End } from "./inbox.ts";
import type { McpSdk } from "./sdk.ts";
import { type ServerWall, wallServer } from "./server-wall.ts";
import { StdioTransport } from "./stdio.ts";

/** More pages than any list of tools has. */
const MOST_PAGES = 50;
const MOST_TOOLS = 1_000;

export interface ConnectionOptions {
  readonly settings: McpSettings;
  readonly sdk: McpSdk;
  readonly clock: Clock;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  readonly runId: string;
  /** Where what ends the server's process at once is kept while there is one. */
  readonly kills: Set<() => void>;
  readonly notice: (message: string) => void;
  /** Aborts when the session is closed. */
  readonly signal: AbortSignal;
  /** What its process is started behind. */
  readonly wall: ServerWall | undefined;
}

/** A server that was reached and has said who it is. */
export interface Connection {
  /** Why it is over; undefined while it is not. */
  readonly end: End | undefined;
  /** Messages heard so far: whether there is any life in it. */
  readonly heard: number;
  /** Whether the list may be another than when it was last asked for. */
  isStale(): boolean;
  list(signal: AbortSignal): Promise<readonly ListedTool[]>;
  call(name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown>;
  /** Gives it up, for this reason, without waiting. */
  drop(end: End): void;
  close(): Promise<void>;
}

/** Reaches a server within its time. Rejects with Error when it cannot be. */
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
      // What could not be understood was answered or counted before it came to the client.
      onUncaughtError: () => undefined,
    });
  } catch (thrown) {
    // The client closes what it could not use; that is not why.
    const before = end?.code === "closed" ? undefined : end?.message;
    const why = stop.signal.aborted ? messageOf(stop.signal.reason) : before;
    await close();
    const said = transport instanceof StdioTransport && transport.stderr !== "" ? `; it said: ${transport.stderr}` : "";
    throw new Error(`${why ?? messageOf(thrown)}${said}`, { cause: thrown });
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
      // Before it is asked: a change while it answers is heard.
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

type Common = Pick<
  ConstructorParameters<typeof StdioTransport>[0],
  "maxMessageBytes" | "validate" | "notice" | "changed" | "ended"
>;

async function transportTo(
  { settings: { config }, sdk, workspace, env, runId, wall }: ConnectionOptions,
  common: Common,
): Promise<StdioTransport | HttpTransport> {
  if ("url" in config) return new HttpTransport({ ...common, sdk, url: config.url, headers: config.headers ?? {} });
  const { command, args = [], cwd = ".", env: added = {} } = config;
  // A path is one from the workspace; a bare name is looked for in PATH.
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
