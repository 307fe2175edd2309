import { probeMcpServers } from "@sluice/stages";
import type { Environment } from "@sluice/tui/user";
import type { ProjectSettings } from "../../../project/load-config.ts";
import { type Check, missing, ok, warning } from "./check.ts";

export interface McpSurroundings {
  /** Of a config that is trusted; nothing is started without one. */
  readonly settings: ProjectSettings | undefined;
  readonly workspace: string;
  readonly env: Environment;
}

/** Starts the servers that a trusted config names, lists their tools and ends them. Only runs that could call one need it. */
export async function checkMcpServers({ settings, workspace, env }: McpSurroundings): Promise<readonly Check[]> {
  const { mcpServers, secrets = [], passEnv = [] } = settings ?? {};
  if (mcpServers === undefined) return [];
  const probes = await probeMcpServers(mcpServers, { cwd: workspace, env, secrets, passEnv });
  return probes.flatMap(({ name, tools, faults }): readonly Check[] => {
    const about = `mcp ${name}`;
    if (tools === undefined) {
      const mend =
        mcpServers[name]?.optional === true
          ? "mend it; runs go on without it"
          : "mend its settings in mcpServers, or mark it optional";
      return [missing(about, faults.join("; "), mend)];
    }
    const listed =
      tools.length === 0
        ? "no tools"
        : `${tools.length === 1 ? "a tool" : `${tools.length} tools`}: ${tools.join(", ")}`;
    return [ok(about, listed), ...faults.map((fault) => warning(about, fault))];
  });
}
