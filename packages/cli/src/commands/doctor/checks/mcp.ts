import { probeMcpServers } from "@sluice/stages/tools";
import type { Environment } from "@sluice/tui/user";
import { count } from "@sluice/view/words";
import type { ProjectSettings } from "../../../project/load-config.ts";
import { type Check, missing, ok, warning } from "./check.ts";

/** Starts the servers of a trusted config, lists their tools and ends them. A failure blocks only runs that could call one. */
export async function checkMcpServers(
  settings: ProjectSettings | undefined,
  workspace: string,
  env: Environment,
): Promise<readonly Check[]> {
  const { mcpServers, secrets = [], passEnv = [] } = settings ?? {};
  if (mcpServers === undefined) return [];
  const probes = await probeMcpServers(mcpServers, { cwd: workspace, env, secrets, passEnv });
  return probes.flatMap(({ name, tools, faults }): readonly Check[] => {
    const label = `mcp ${name}`;
    if (tools === undefined) {
      const fix =
        mcpServers[name]?.optional === true
          ? "fix it; runs continue without this server"
          : "fix its settings in mcpServers, or mark it optional";
      return [missing(label, faults.join("; "), fix)];
    }
    const listed = tools.length === 0 ? "no tools" : `${count(tools.length, "tool")}: ${tools.join(", ")}`;
    return [ok(label, listed), ...faults.map((fault) => warning(label, fault))];
  });
}
