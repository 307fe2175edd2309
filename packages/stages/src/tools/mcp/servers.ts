import { type Clock, messageOf, type PipelineSpec, SluiceError, type Tool } from "@sluice/core";
import { type McpServers, type McpSettings, readMcpServers } from "./config.ts";
import { keysOf } from "./keys.ts";
import { mayNeed } from "./names.ts";
import { createServer, type McpServer } from "./server.ts";
import { loadMcpSdk, type McpSdk } from "./transport/sdk.ts";
import type { McpStart } from "./transport/start.ts";

/** Something is wrong with an MCP server, and runs go on. */
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
  /** Keys in the settings of the servers, and what each is called. */
  readonly keys: ReadonlyMap<string, string>;
  /**
   * The tools of the servers that a stage of this pipeline could call; what is not running is started, all at once. Errors:
   * Validation `mcp_servers_invalid`; Session `mcp_not_installed`, or `mcp_server_failed` with every server that did not start.
   */
  toolsFor(spec: PipelineSpec, start: McpStart): Promise<readonly Tool[]>;
  /** Names of those whose processes run, or ran, without a wall. */
  readonly unwalled: ReadonlySet<string>;
  /** Ends them, with everything they started. */
  close(): Promise<void>;
}

export function createMcpSource({ servers, clock, root, onFault }: ServersOptions): McpSource {
  const settings = readMcpServers(servers);
  const kills = new Set<() => void>();
  const unwalled = new Set<string>();
  const running = new Map<string, McpServer>();
  let sdk: Promise<McpSdk> | undefined;
  const loaded = (): Promise<McpSdk> => {
    sdk ??= loadMcpSdk();
    return sdk;
  };
  // Nothing can be waited for any more when the process ends; a group of its own would live on.
  const killAll = (): void => {
    for (const kill of kills) kill();
  };
  /** Of the run that came last; a server may say what it likes at any time. */
  let clean = (text: string): string => text;
  const told = new Set<string>();
  let watching = false;
  let closed = false;

  const serverOf = (one: McpSettings): McpServer => {
    const known = running.get(one.name);
    if (known !== undefined) return known;
    const onServerFault = (message: string): void => onFault({ by: `mcp:${one.name}`, message: clean(message) });
    const made = createServer({
      settings: one,
      sdk: loaded,
      clock,
      workspace: root,
      kills,
      unwalled,
      onFault: onServerFault,
    });
    running.set(one.name, made);
    return made;
  };

  /** What a server says of its tools goes to whoever serves the models, whom its key is no business of. */
  const isClean = (server: string, { name, description, inputSchema }: Tool): boolean => {
    const said = JSON.stringify([name, description, inputSchema]);
    if (clean(said) === said) return true;
    const message = `its tool ${clean(name)} is left out: what it says of it holds a key`;
    if (!told.has(name)) onFault({ by: `mcp:${server}`, message });
    told.add(name);
    return false;
  };

  return {
    keys: keysOf(settings),
    unwalled,
    toolsFor: async (spec, start) => {
      const needed = settings.filter(({ name }) => mayNeed(spec, name));
      if (needed.length === 0) return [];
      if (closed) throw new SluiceError("Session", "mcp_server_failed", "the session is closed");
      clean = (text) => start.secrets.text(text);
      await loaded();
      if (!watching) process.on("exit", killAll);
      watching = true;
      const asked = await Promise.allSettled(needed.map((one) => serverOf(one).tools(start)));
      const failures: string[] = [];
      const tools = asked.flatMap((one, at): readonly Tool[] => {
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
      await Promise.all([...running.values()].map((server) => server.close()));
      process.off("exit", killAll);
    },
  };
}

function notStarted(failures: readonly string[]): SluiceError {
  const message =
    failures.length === 1
      ? `the MCP server ${failures[0]}`
      : ["these MCP servers did not start:", ...failures.map((failure) => `  ${failure}`)].join("\n");
  const mend = "mend its settings in mcpServers, or mark it optional";
  return new SluiceError("Session", "mcp_server_failed", `${message} (${mend})`, {
    detail: { servers: [...failures] },
  });
}
