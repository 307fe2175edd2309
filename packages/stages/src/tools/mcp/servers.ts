import { type Clock, type PipelineSpec, SluiceError, type Tool } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { type McpServers, readMcpServers } from "./config.ts";
import { keysOf } from "./keys.ts";
import { mayNeed } from "./names.ts";
import { createServer } from "./server.ts";
import type { McpStart, ServerAllowance } from "./transport/connection.ts";
import { loadMcpSdk } from "./transport/sdk.ts";
import type { WallPlan } from "./transport/server-wall.ts";

/** A problem of an MCP server that does not stop the run. */
export interface McpFault {
  /** `mcp:<server>`. */
  readonly by: string;
  readonly message: string;
}

export interface ServersOptions {
  readonly servers: McpServers;
  readonly clock: Clock;
  /** The workspace. */
  readonly root: string;
  readonly onFault: (fault: McpFault) => void;
}

/** The configured servers of one session. */
export interface McpSource {
  /** The names of keys in the servers' settings, by their values. */
  readonly keys: ReadonlyMap<string, string>;
  /**
   * The tools of the servers that a stage of this pipeline could call, of all servers without a pipeline; starts these servers
   * concurrently. Errors: Validation `mcp_servers_invalid`; Session `mcp_not_installed`, or `mcp_server_failed` with every server that did not start.
   */
  toolsFor(spec: PipelineSpec | undefined, start: McpStart): Promise<readonly Tool[]>;
  /** Names of servers whose processes have run in a sandbox, and of those that ran outside one. */
  readonly walled: ReadonlySet<string>;
  readonly unwalled: ReadonlySet<string>;
  /** Stops the servers and everything they started. */
  close(): Promise<void>;
}

export function createMcpSource({ servers, clock, root, onFault }: ServersOptions): McpSource {
  const settings = readMcpServers(servers);
  const kills = new Set<() => void>();
  const walled = new Set<string>();
  const unwalled = new Set<string>();
  // At process exit nothing can be awaited, and the servers' process groups would stay alive.
  const killAll = (): void => {
    for (const kill of kills) kill();
  };
  /** Redacts with the secrets of the latest run, since messages of servers belong to no run. */
  let clean = (text: string): string => text;
  const reported = new Set<string>();
  let closed = false;
  let allowed: ServerAllowance | undefined;
  /** From now on, servers get no more than this run would give them. */
  const allowOnly = ({ env, wall }: McpStart): void => {
    const before = allowed;
    const kept = Object.entries(env).filter(([name]) => before === undefined || name in before.env);
    const plan = wall === undefined ? before?.plan : withPlan(wall.plan(), before?.plan);
    allowed = { env: Object.fromEntries(kept), ...(plan === undefined ? {} : { plan }) };
  };

  const all = settings.map((one) => {
    const onServerFault = (message: string): void => onFault({ by: `mcp:${one.name}`, message: clean(message) });
    const shared = {
      sdk: loadMcpSdk,
      clock,
      workspace: root,
      kills,
      walled,
      unwalled,
      allowed: () => allowed ?? NOTHING,
    };
    return { ...one, server: createServer({ ...shared, settings: one, onFault: onServerFault }) };
  });

  /** Whether a tool's definition contains no key; model providers would receive it. */
  const isClean = (server: string, { name, description, inputSchema }: Tool): boolean => {
    const sent = JSON.stringify([name, description, inputSchema]);
    if (clean(sent) === sent) return true;
    const message = `its tool ${clean(name)} is excluded: its definition contains a key`;
    if (!reported.has(name)) onFault({ by: `mcp:${server}`, message });
    reported.add(name);
    return false;
  };

  return {
    keys: keysOf(settings),
    walled,
    unwalled,
    toolsFor: async (spec, start) => {
      allowOnly(start);
      // Also those that only other runs call: they work beside this one.
      await Promise.all(all.map(({ server }) => server.confine()));
      const needed = all.filter(({ name }) => spec === undefined || mayNeed(spec, name));
      if (needed.length === 0) return [];
      if (closed) throw new SluiceError("Session", "mcp_server_failed", "the session is closed");
      clean = (text) => start.secrets.text(text);
      await loadMcpSdk();
      // Registered once, however often servers start.
      process.off("exit", killAll).on("exit", killAll);
      const starts = await Promise.allSettled(needed.map(({ server }) => server.tools(start)));
      const failures: string[] = [];
      const tools = starts.flatMap((one, at): readonly Tool[] => {
        const { name, optional } = needed[at] ?? { name: "", optional: false };
        if (one.status === "fulfilled") return one.value.filter((tool) => isClean(name, tool));
        if (optional) onFault({ by: `mcp:${name}`, message: clean(`it did not start: ${messageOf(one.reason)}`) });
        else failures.push(clean(`${name}: ${messageOf(one.reason)}`));
        return [];
      });
      if (failures.length > 0) throw notStarted(failures);
      return tools;
    },
    close: async () => {
      closed = true;
      await Promise.all(all.map(({ server }) => server.close()));
      process.off("exit", killAll);
    },
  };
}

const NOTHING: ServerAllowance = { env: {} };

/** Everything that either of two plans hides or protects. */
function withPlan(plan: WallPlan, other: WallPlan = plan): WallPlan {
  const both = (own: readonly string[], more: readonly string[]): readonly string[] => [...new Set([...own, ...more])];
  return { absent: both(other.absent, plan.absent), readOnly: both(other.readOnly, plan.readOnly) };
}

function notStarted(failures: readonly string[]): SluiceError {
  const message =
    failures.length === 1
      ? `the MCP server ${failures[0]}`
      : ["these MCP servers did not start:", ...failures.map((failure) => `  ${failure}`)].join("\n");
  const fix = "fix its settings in mcpServers, or make it optional";
  return new SluiceError("Session", "mcp_server_failed", `${message} (${fix})`, {
    detail: { servers: [...failures] },
  });
}
