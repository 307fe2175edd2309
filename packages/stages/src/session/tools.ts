import { type Clock, defineTool, type PipelineSpec, type Tool } from "@sluice/core";
import { askUserTool } from "../tools/ask-user.ts";
import { type BashOptions, bashTool } from "../tools/bash/bash-tool.ts";
import { editTool } from "../tools/files/edit.ts";
import { readTool } from "../tools/files/read.ts";
import { writeTool } from "../tools/files/write.ts";
import type { McpSource } from "../tools/mcp/servers.ts";
import type { McpStart } from "../tools/mcp/transport/link.ts";
import { globTool } from "../tools/search/glob.ts";
import { grepTool } from "../tools/search/grep.ts";
import type { SessionOptions } from "./options.ts";

/** The tools of a session: its own from the beginning, those of MCP servers from the first run that could call them. */
export interface SessionTools {
  /** Those that came with Sluice and that nobody replaced. */
  readonly builtins: ReadonlySet<string>;
  /** Keys in the settings of MCP servers, and what each is called. Throws Validation `mcp_servers_invalid`. */
  keys(): Promise<ReadonlyMap<string, string>>;
  /**
   * What runs of this pipeline have: servers are started for it where they are needed. The same map as long as it holds the
   * same. Errors are those of McpSource.
   */
  liveFor(spec: PipelineSpec, start: McpStart): Promise<ReadonlyMap<string, Tool>>;
  /** Names of the MCP servers that were started without a wall: by their settings, or where there is none. */
  unwalledServers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export function sessionTools(
  options: Pick<SessionOptions, "tools" | "mcpServers" | "onFault">,
  { root, clock, bash }: { readonly root: string; readonly clock: Clock; readonly bash: BashOptions },
): SessionTools {
  const builtins = builtinTools(bash);
  const custom = options.tools ?? [];
  const own = new Map([...builtins, ...custom].map((tool) => [tool.name, tool]));
  const replaced = new Set(custom.map((tool) => tool.name));
  const servers = options.mcpServers ?? {};
  const onFault = options.onFault ?? (() => undefined);
  /** Each set of tools that a run has had. */
  const known = new Map<string, ReadonlyMap<string, Tool>>();
  let source: Promise<McpSource> | undefined;

  /** Loaded when there are servers, and not before a run. */
  const mcp = async (): Promise<McpSource | undefined> => {
    if (Object.keys(servers).length === 0) return undefined;
    source ??= import("../tools/mcp/servers.ts").then(({ createMcpSource }) =>
      createMcpSource({ servers, clock, root, onFault }),
    );
    return await source;
  };

  return {
    builtins: new Set(builtins.map((tool) => tool.name).filter((name) => !replaced.has(name))),
    keys: async () => (await mcp())?.keys ?? new Map(),
    unwalledServers: async () => [...((await mcp())?.unwalled ?? [])],
    liveFor: async (spec, start) => {
      const added = (await (await mcp())?.toolsFor(spec, start)) ?? [];
      if (added.length === 0) return own;
      const key = added.map((tool) => tool.name).join(" ");
      let live = known.get(key);
      if (live === undefined) {
        // A tool of the session's own is what its author meant by the name.
        const free = added.filter((tool) => !own.has(tool.name));
        for (const { name } of added.filter((tool) => own.has(tool.name)))
          onFault({ by: "mcp", message: `${name} is left out: the session has a tool of its own by this name` });
        live = new Map([...own, ...free.map((tool) => [tool.name, tool] as const)]);
        known.set(key, live);
      }
      return live;
    },
    close: async () => {
      await (await source?.catch(() => undefined))?.close(); // who asked for it was told why it cannot be
    },
  };
}

/** The tools that come with Sluice. Made anew, so that a session owns its own. */
export function builtinTools(bash: BashOptions = {}): readonly Tool[] {
  return [
    defineTool(readTool),
    defineTool(grepTool()),
    defineTool(globTool),
    defineTool(editTool),
    defineTool(writeTool),
    defineTool(bashTool(bash)),
    defineTool(askUserTool),
  ];
}
