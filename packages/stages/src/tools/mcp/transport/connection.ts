import { isAbsolute, resolve } from "node:path";
import type { MCPClient } from "@ai-sdk/mcp";
import type { Clock, TextMask } from "@sluice/core";
import { isSameJson, messageOf } from "@sluice/core/runtime";
import { outsideFirst } from "../../files/paths.ts";
import type { SandboxedProgram, SandboxPlan, WatchedWork } from "../../sandbox.ts";
import type { McpSettings, McpStdioServer } from "../config.ts";
import type { ListedTool } from "../definition.ts";
import { HttpTransport } from "./http.ts";
import type { McpSdk } from "./sdk.ts";
import { type ServerProcess, type ServerWall, serverPlan, type WallPlan } from "./server-wall.ts";
import { StdioTransport } from "./stdio.ts";
import { timed } from "./timed.ts";
import type { Transport } from "./transport.ts";

/** Pages of a tool list; the limit stops endless lists. */
const MOST_PAGES = 50;
const MOST_TOOLS = 1_000;

/** What a run gives to the servers of its session, which outlive it. */
export interface McpStart {
  /** The child processes of servers that it starts are found by this run. */
  readonly runId: string;
  /** The environment of the server's process, without the session's secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Redacts the server's messages. */
  readonly secrets: TextMask;
  /** The session's sandbox for servers. */
  readonly wall?: ServerWall;
}

export interface LinkOptions {
  readonly settings: McpSettings;
  readonly sdk: () => Promise<McpSdk>;
  readonly clock: Clock;
  readonly workspace: string;
  /** Functions that kill running servers at once. */
  readonly kills: Set<() => void>;
  /** Collects the names of servers that run in the sandbox, and of those that run outside it. */
  readonly walled: Set<string>;
  readonly unwalled: Set<string>;
  /** What a process may have now: no more than each run of the session so far would give it. */
  readonly allowed: () => ServerAllowance;
  readonly onFault: (message: string) => void;
}

/** What the process of a server gets. */
export interface ServerAllowance {
  readonly env: Readonly<Record<string, string>>;
  /** Absent without a sandbox. */
  readonly plan?: WallPlan;
}

/** A connection to a server after its handshake. */
export interface Connection {
  readonly transport: Transport;
  list(signal: AbortSignal): Promise<readonly ListedTool[]>;
  call(name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
}

/** The single connection to a server, opened on demand. */
export interface Link {
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
  /** Returns the open connection, or opens one for all concurrent callers. Rejects with Error. */
  reach(): Promise<Connection>;
  /** Does work that needs a connection, which stays open until the work has ended or given up. */
  use<T>(work: () => Promise<T>): Promise<T>;
  /** Awaits a call that may write. What a server in the sandbox leaves meanwhile where programs of this machine obey it is moved away. */
  watched<T>(call: () => Promise<T>): Promise<WatchedWork<T>>;
  /** Ends a process that has more than is allowed now: a key, or files to write. The next call starts another. */
  confine(): Promise<void>;
  /** Resets the count of restarts after an answered call. */
  works(): void;
  close(): Promise<void>;
}

export function createLink(options: LinkOptions, first: McpStart): Link {
  const { settings, walled, unwalled } = options;
  const { config } = settings;
  // A server that ran in the sandbox is never restarted outside it.
  const isHeld = "command" in config && config.sandbox !== false && first.wall?.sandbox.wall !== undefined;
  const wall = isHeld ? first.wall : undefined;
  if ("command" in config && !isHeld) unwalled.add(settings.name);
  if (isHeld) walled.add(settings.name);
  /** What the last process got. */
  let given: ServerAllowance | undefined;
  /** The process in the sandbox, and all that it sees and changes. */
  let held:
    | (Pick<SandboxedProgram, "isIntact"> & { readonly env: ServerProcess["env"]; readonly plan: SandboxPlan })
    | undefined;
  const closing = new AbortController();
  const using = new Set<Promise<unknown>>();
  let confining: Promise<void> | undefined;
  let connection: Connection | undefined;
  let starting: Promise<Connection> | undefined;
  let ends = 0;

  const start = async (): Promise<Connection> => {
    if (connection !== undefined) {
      if (ends >= settings.restarts) throw new Error(`it ended ${often(ends + 1)} and is not restarted`);
      ends += 1;
      // The next process may need resources of the last one.
      await connection.close();
    }
    const sdk = await options.sdk();
    if (closing.signal.aborted) throw new Error("the session was closed");
    connection = await connect(options, await transportTo(sdk), sdk, closing.signal);
    return connection;
  };

  const transportTo = async (sdk: McpSdk): Promise<Transport> => {
    const { runId, secrets } = first;
    const { workspace, onFault: notice } = options;
    const { maxMessageBytes } = settings;
    const common = { maxMessageBytes, validate: sdk.validateJSONRPCMessage, secrets, notice };
    if ("url" in config) return new HttpTransport({ ...common, sdk, url: config.url, headers: config.headers ?? {} });
    given = options.allowed();
    const process = processOf(config, given.env, workspace);
    if (wall === undefined) return new StdioTransport({ ...common, ...process, runId });
    const plan = serverPlan(process, config, workspace, given.plan ?? wall.plan());
    const { file, args, isIntact } = await wall.sandbox.wrap(process, plan);
    held = { env: process.env, plan, isIntact };
    return new StdioTransport({ ...common, ...process, file, args, runId });
  };

  const end = async (): Promise<void> => {
    await Promise.allSettled([...using, starting]);
    await connection?.close();
    connection = undefined;
  };

  /** Ends the process between two uses, and lets no other one begin meanwhile. */
  const endOnce = async (): Promise<void> => {
    const before = confining;
    const now = (async () => {
      await before;
      await end();
    })();
    confining = now;
    try {
      await now;
    } finally {
      if (confining === now) confining = undefined;
    }
  };

  return {
    closed: closing.signal,
    reach: async () => {
      if (connection !== undefined && connection.transport.ended === undefined) return connection;
      starting ??= start().finally(() => {
        starting = undefined;
      });
      return await starting;
    },
    use: async (work) => {
      for (;;) {
        const isWhole = connection === undefined || (await held?.isIntact()) !== false;
        if (confining === undefined && isWhole) break;
        await (confining ?? endOnce());
      }
      const used = work();
      using.add(used);
      try {
        return await used;
      } finally {
        using.delete(used);
      }
    },
    watched: async (call) => {
      if (held === undefined || wall === undefined) return { end: await call(), movedAway: [] };
      return await wall.sandbox.watched(held.env, held.plan, call);
    },
    confine: async () => {
      const { env, plan } = options.allowed();
      // A server that is reached by its address got nothing.
      const had = given;
      if (had === undefined) return;
      const hasMore = Object.entries(had.env).some(([name, value]) => env[name] !== value);
      if (!hasMore && (held === undefined || isSameJson(plan, had.plan))) return;
      await endOnce();
    },
    works: () => {
      ends = 0;
    },
    close: async () => {
      closing.abort();
      await starting?.catch(() => undefined); // reported to its caller
      await connection?.close();
    },
  };
}

function often(times: number): string {
  return times === 1 ? "once" : `${times} times in a row`;
}

function processOf(
  { command, args = [], cwd = ".", env: added = {} }: McpStdioServer,
  env: Readonly<Record<string, string>>,
  workspace: string,
): ServerProcess {
  // A path is relative to the workspace; a bare name is looked up in PATH.
  const file = command.includes("/") && !isAbsolute(command) ? resolve(workspace, command) : command;
  const inherited = env.PATH === undefined ? env : { ...env, PATH: outsideFirst(env.PATH, workspace) };
  return { file, args, cwd: resolve(workspace, cwd), env: { ...inherited, ...added } };
}

/** Connects to a server within its start timeout. Rejects with Error. */
async function connect(
  { settings, clock, kills }: LinkOptions,
  transport: Transport,
  sdk: McpSdk,
  closed: AbortSignal,
): Promise<Connection> {
  const { startTimeoutMs } = settings;
  const kill = (): void => transport.kill();
  kills.add(kill);
  const close = async (): Promise<void> => {
    await transport.close();
    kills.delete(kill);
  };
  const opened = await timed(clock, startTimeoutMs, [closed], (signal) =>
    sdk.createMCPClient({
      transport,
      clientName: "sluice",
      initializationOptions: { signal },
      // The transport has already answered or counted invalid messages.
      onUncaughtError: () => undefined,
    }),
  );
  if (!opened.ok) {
    const end = transport.ended;
    await close();
    const log = transport.stderr.trim();
    // The client closes the connection after a failure; that is not the cause.
    let why = end === undefined || end.code === "closed" ? messageOf(opened.thrown) : end.message;
    if (closed.aborted) why = "the session was closed";
    if (opened.late) why = `it did not answer within ${startTimeoutMs} ms`;
    throw new Error(`${why}${log === "" ? "" : `; its error output: ${log}`}`, { cause: opened.thrown });
  }
  const client = opened.value;
  return {
    transport,
    list: async (signal) => {
      // Reset before the request, so that a change during the answer counts.
      transport.isStale = false;
      try {
        return await listAll(client, signal);
      } catch (thrown) {
        transport.isStale = true;
        throw thrown;
      }
    },
    call: (name, input, signal) => client.callTool({ name, arguments: { ...input }, options: { signal } }),
    close,
  };
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
