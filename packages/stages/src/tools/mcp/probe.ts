import { type Clock, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { sessionSecrets } from "../../secrets/detect.ts";
import type { McpServers } from "./config.ts";
import { prefixOf } from "./names.ts";

/** The result of starting one MCP server. */
export interface McpProbe {
  readonly name: string;
  /** Its tools by the server's own names; undefined if it did not start. */
  readonly tools: readonly string[] | undefined;
  /** Why it did not start, and problems of single tools. */
  readonly faults: readonly string[];
}

export interface McpProbeOptions {
  /** The workspace. */
  readonly cwd: string;
  /** The environment of servers; secrets are removed, as in a session. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly secrets?: readonly string[];
  readonly passEnv?: readonly string[];
  readonly clock?: Clock;
}

/** Starts each server, lists its tools, and stops it, like a session. Throws Validation `mcp_servers_invalid`. */
export async function probeMcpServers(servers: McpServers, options: McpProbeOptions): Promise<readonly McpProbe[]> {
  const { cwd, env, secrets = [], passEnv = [], clock = systemClock } = options;
  // Loaded on demand, as in a session.
  const { createMcpSource } = await import("./servers.ts");
  return await Promise.all(
    Object.entries(servers).map(async ([name, config]): Promise<McpProbe> => {
      const faults: string[] = [];
      const source = createMcpSource({
        servers: { [name]: { ...config, optional: false } },
        clock,
        root: cwd,
        onFault: ({ message }) => void faults.push(message),
      });
      const given = source.keys;
      const { filter, childEnv } = sessionSecrets(env, { named: secrets, passed: passEnv, values: [], given });
      try {
        const tools = await source.toolsFor(undefined, { runId: "doctor", env: childEnv, secrets: filter });
        return { name, tools: tools.map((tool) => tool.name.slice(prefixOf(name).length)), faults };
      } catch (thrown) {
        return { name, tools: undefined, faults: [...faults, messageOf(thrown)] };
      } finally {
        await source.close();
      }
    }),
  );
}
