import { done, isSluiceError, type PipelineSpec, pipeline, stage, systemClock } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { messageOf, shape } from "@sluice/core/runtime";
import { prefixOf } from "@sluice/stages/tools";
import { count } from "@sluice/view/words";
import type { LoadedConfig } from "../../../project/load-config.ts";
import type { ProjectPaths } from "../../../project/project-paths.ts";
import { openSession } from "../../../runs/open-session.ts";
import type { CallerContext } from "../../../runs/run-plan.ts";
import { demoPlan } from "../../demo/demo-run.ts";
import { type Check, missing, ok, warning } from "./check.ts";

/**
 * Has a session of the project start the servers of its trusted config, each as for a run that could call only this one, lists their
 * tools and ends them. A failure blocks only runs that could call one.
 */
export async function checkMcpServers(
  config: LoadedConfig | undefined,
  place: ProjectPaths,
  context: CallerContext,
): Promise<readonly Check[]> {
  const servers = Object.entries(config?.settings.mcpServers ?? {});
  if (config === undefined || servers.length === 0) return [];
  const faults: { readonly by: string; readonly message: string }[] = [];
  // A session continues without an optional server, and so would not say why it failed.
  const mcpServers = Object.fromEntries(servers.map(([name, server]) => [name, { ...server, optional: false }]));
  const settings = { ...config.settings, mcpServers };
  const { session } = openSession(
    {
      // The demo's model needs no key, and is never asked.
      plan: { ...(await demoPlan()), code: config.code, config: { ...config, settings } },
      place,
      flags: {},
      // The store is not opened, which could create it, but no server may see it.
      store: () => ({ ...createHost(createMemoryJournals().connect(), { clock: systemClock }), folder: place.store }),
      people: { interactors: [], wait: false, onFault: (fault) => void faults.push(fault) },
    },
    context,
  );
  const examine = async (name: string, isOptional: boolean): Promise<readonly Check[]> => {
    const label = `mcp ${name}`;
    const prefix = prefixOf(name);
    const said = (): readonly string[] => faults.filter(({ by }) => by === `mcp:${name}`).map(({ message }) => message);
    try {
      const tools = (await session.tools(callerOf(prefix))).map((tool) => tool.name.slice(prefix.length));
      const listed = tools.length === 0 ? "no tools" : `${count(tools.length, "tool")}: ${tools.join(", ")}`;
      return [ok(label, listed), ...said().map((fault) => warning(label, fault))];
    } catch (thrown) {
      // Other errors come before a server is started, and name their fix.
      if (!isSluiceError(thrown, "mcp_server_failed"))
        return [missing(label, `it was not started: ${messageOf(thrown)}`)];
      const message = [...said(), thrown.message].join("; ");
      const fix = isOptional
        ? "fix it; runs continue without this server"
        : "fix its settings in mcpServers, or mark it optional";
      return [missing(label, message, fix)];
    }
  };
  try {
    const checks = await Promise.all(servers.map(([name, { optional = false }]) => examine(name, optional)));
    return checks.flat();
  } finally {
    await session.close();
  }
}

/** A pipeline that could call nothing but the tools with this prefix. */
function callerOf(prefix: string): { readonly spec: PipelineSpec } {
  const schema = shape.openObject({});
  const call = stage({
    prompt: "Call a tool.",
    // A server may have no tools.
    allowedTools: [{ tool: `${prefix}*`, optional: true }],
    completionTool: "finish_check",
    completionSchema: schema,
    turnCap: 1,
  });
  return pipeline({ id: "check", input: schema, stages: { call }, initial: "call", next: { call: () => done(null) } });
}
