import type { AdapterOptions, HookAdapter } from "../hook-adapter.ts";
import { claudeStyleAdapter } from "./claude.ts";
import { startingIn } from "./claude-answers.ts";
import { agent, harmless, patch, type ReadTool, readTool, shell, type ToolTable } from "./mapping.ts";

const TOOLS: ToolTable = new Map<string, ReadTool>([
  ["Bash", (fields, cwd) => shell(fields.text("command"), cwd)],
  ["apply_patch", (fields, cwd) => patch(fields.text("command"), cwd)],
  ["view_image", readTool(["path"], "detail")],
  [
    "spawn_agent",
    (fields) =>
      agent(fields, "message", "agent_type", "items", "model", "reasoning_effort", "task_name", "fork_context"),
  ],
  ...harmless(
    "close_agent",
    "create_goal",
    "get_goal",
    "list_agents",
    "request_user_input",
    "resume_agent",
    "send_input",
    "send_message",
    "tool_search",
    "update_goal",
    "update_plan",
    "wait",
    "wait_agent",
  ),
]);

/**
 * Codex. Its payloads do not say in which folder a command runs, so an approved line begins by changing to the folder that it was
 * judged for.
 */
export function codexAdapter(options?: AdapterOptions): HookAdapter {
  return claudeStyleAdapter(
    "codex",
    { tools: TOOLS, lineFor: ({ cwd }, approved) => startingIn(cwd, approved) },
    options,
  );
}
