import type { AdapterOptions, HookAdapter, MappedCall } from "../hook-adapter.ts";
import { claudeStyleAdapter } from "./claude.ts";
import { type Fields, RefusedCall, shown } from "./fields.ts";
import {
  agent,
  call,
  editTool,
  fetchTool,
  glob,
  globFolder,
  harmless,
  ignoring,
  listTool,
  notebookTool,
  type ReadTool,
  readTool,
  search,
  shell,
  type ToolTable,
  webSearchTool,
  writeTool,
} from "./mapping.ts";

const TOOLS: ToolTable = new Map<string, ReadTool>([
  [
    "run_shell_command",
    (fields, cwd) =>
      shell(fields.text("command"), cwd, {
        background: fields.flag("is_background"),
        folder: fields.optionalText("directory"),
        ...fields.options("description", "timeout"),
      }),
  ],
  ["read_file", readTool(["file_path", "absolute_path"], "offset", "limit", "pages")],
  [
    "read_many_files",
    (fields, cwd) => {
      const patterns = fields.texts("paths") ?? fields.texts("include") ?? [];
      return call("Read", { folders: patterns.map((pattern) => globFolder(pattern, cwd)) });
    },
  ],
  ["write_file", ignoring(["record_as_artifact"], writeTool("file_path", "content"))],
  ["notebook_edit", notebookTool],
  ["edit", editTool("file_path", { old: "old_string", now: "new_string", all: "replace_all" })],
  ["glob", (fields, cwd) => glob(fields, cwd, "path")],
  ["grep_search", (fields, cwd) => search(fields, cwd, { paths: ["path"], filters: ["glob"], options: ["limit"] })],
  ["list_directory", ignoring(["ignore", "file_filtering_options"], listTool("path"))],
  ["web_fetch", ignoring(["prompt", "format"], fetchTool)],
  ["web_search", webSearchTool("provider")],
  ["agent", agentCall],
  ["task", agentCall],
  ["skill", (fields) => call("Skill", fields.options("skill", "args"), true)],
  ...harmless(
    "ask_user_question",
    "cron_list",
    "exit_plan_mode",
    "get_goal",
    "list_agents",
    "todo_write",
    "tool_search",
    "update_goal",
  ),
]);

/** Agents that are programs of their own: their calls reach no hook. */
const OTHER_PROGRAM = /claude|codex|copilot|gemini|opencode|acp/i;

function agentCall(fields: Fields): MappedCall {
  const type = fields.optionalText("subagent_type") ?? "";
  if (OTHER_PROGRAM.test(type))
    throw new RefusedCall(`${shown(type)} is a program of its own, whose calls reach no hook`);
  return agent(
    fields,
    "description",
    "prompt",
    "subagent_type",
    "fork_turns",
    "fork_tools",
    "fork_profile",
    "run_in_background",
    "model",
  );
}

/** Qwen Code. It ignores rewritten inputs, so only lines that need no rewriting run. */
export function qwenAdapter(options?: AdapterOptions): HookAdapter {
  return claudeStyleAdapter("qwen", { tools: TOOLS, rewrites: "ignores" }, options);
}
