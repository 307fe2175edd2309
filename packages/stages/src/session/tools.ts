import type { Clock, PipelineSpec, Tool } from "@sluice/core";
import type { BashOptions } from "../tools/bash/bash-tool.ts";
import { builtinTools } from "../tools/builtin-tools.ts";
import type { McpSource } from "../tools/mcp/servers.ts";
import type { McpStart } from "../tools/mcp/transport/connection.ts";
import type { SessionOptions } from "./options.ts";

const NO_SERVERS: Pick<McpSource, "walled" | "unwalled"> = { walled: new Set(), unwalled: new Set() };

/** The tools of a session; those of MCP servers are added by the first run that could call them. */
export function sessionTools(
  options: Pick<SessionOptions, "tools" | "mcpServers" | "onFault">,
  { root, clock, bash }: { readonly root: string; readonly clock: Clock; readonly bash: BashOptions },
) {
  const { own, builtins } = ownTools(builtinTools(bash), options.tools);
  const servers = options.mcpServers ?? {};
  const onFault = options.onFault ?? (() => undefined);
  /** The tools of earlier runs, by the names of their MCP tools. */
  const known = new Map<string, ReadonlyMap<string, Tool>>();
  let source: Promise<McpSource> | undefined;

  const mcp = async (): Promise<McpSource | undefined> => {
    if (Object.keys(servers).length === 0) return undefined;
    source ??= import("../tools/mcp/servers.ts").then(({ createMcpSource }) =>
      createMcpSource({ servers, clock, root, onFault }),
    );
    return await source;
  };

  return {
    /** Built-in tools that are not replaced. */
    builtins,
    /** Keys in the settings of MCP servers, and their names. Throws Validation `mcp_servers_invalid`. */
    keys: async (): Promise<ReadonlyMap<string, string>> => (await mcp())?.keys ?? new Map(),
    /** The MCP servers that were started in a sandbox, and those that were started without one. */
    servers: async (): Promise<Pick<McpSource, "walled" | "unwalled">> => (await mcp()) ?? NO_SERVERS,
    /**
     * The tools for runs of this pipeline; starts the MCP servers that it needs. Returns the same map for the same tools. Throws
     * the errors of McpSource.
     */
    liveFor: async (spec: PipelineSpec, start: McpStart): Promise<ReadonlyMap<string, Tool>> => {
      const added = (await (await mcp())?.toolsFor(spec, start)) ?? [];
      if (added.length === 0) return own;
      const key = added.map((tool) => tool.name).join(" ");
      let live = known.get(key);
      if (live === undefined) {
        const free = added.filter((tool) => !own.has(tool.name));
        for (const { name } of added.filter((tool) => own.has(tool.name)))
          onFault({ by: "mcp", message: `${name} is ignored: the session defines a tool with this name` });
        live = new Map([...own, ...free.map((tool) => [tool.name, tool] as const)]);
        known.set(key, live);
      }
      return live;
    },
    close: async (): Promise<void> => {
      await (await source?.catch(() => undefined))?.close(); // the run that needed it has reported the error
    },
  };
}

/** The built-in tools with the custom ones, by name, and the names of the built-in tools that are not replaced. */
export function ownTools(builtins: readonly Tool[], custom: readonly Tool[] = []) {
  const own = new Map([...builtins, ...custom].map((tool) => [tool.name, tool]));
  const kept = builtins.filter((tool) => own.get(tool.name) === tool);
  return { own, builtins: new Set(kept.map(({ name }) => name)) };
}
