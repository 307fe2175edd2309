import type { AdapterOptions, HookAdapter, MappedCall } from "../hook-adapter.ts";
import { readClaudeStyle } from "./claude.ts";
import { claudeAnswer, claudeRefusal } from "./claude-answers.ts";
import { type Fields, nativePath, RefusedCall, shown } from "./fields.ts";
import {
  agent,
  call,
  fetched,
  glob,
  globFolder,
  harmless,
  mapClaudeStyle,
  type ReadTool,
  replacement,
  search,
  shell,
  type ToolTable,
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
  [
    "read_file",
    (fields, cwd) =>
      call("Read", {
        file_path: nativePath(fields.oneOf("file_path", "absolute_path"), cwd),
        ...fields.options("offset", "limit", "pages"),
      }),
  ],
  [
    "read_many_files",
    (fields, cwd) => {
      const patterns = fields.texts("paths") ?? fields.texts("include") ?? [];
      return call("Read", { folders: patterns.map((pattern) => globFolder(pattern, cwd)) });
    },
  ],
  [
    "write_file",
    (fields, cwd) => {
      fields.options("record_as_artifact");
      return call("Write", { file_path: nativePath(fields.text("file_path"), cwd), content: fields.text("content") });
    },
  ],
  [
    "notebook_edit",
    (fields, cwd) => {
      const file_path = nativePath(fields.text("notebook_path"), cwd);
      const { options: cell = {} } = fields.options("cell_id", "new_source", "cell_type", "edit_mode");
      return call("Edit", { file_path, cell });
    },
  ],
  [
    "edit",
    (fields, cwd) =>
      replacement(nativePath(fields.text("file_path"), cwd), {
        old: fields.text("old_string"),
        now: fields.text("new_string"),
        all: fields.flag("replace_all"),
      }),
  ],
  ["glob", (fields, cwd) => glob(fields, cwd, "path")],
  ["grep_search", (fields, cwd) => search(fields, cwd, { paths: ["path"], filters: ["glob"], options: ["limit"] })],
  [
    "list_directory",
    (fields, cwd) => {
      fields.options("ignore", "file_filtering_options");
      return call("Glob", { pattern: "*", path: nativePath(fields.text("path"), cwd) });
    },
  ],
  [
    "web_fetch",
    (fields) => {
      fields.options("prompt", "format");
      return fetched([fields.text("url")]);
    },
  ],
  ["web_search", (fields) => call("WebSearch", { query: fields.text("query"), ...fields.options("provider") })],
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
export function qwenAdapter(options: AdapterOptions = {}): HookAdapter {
  const map = mapClaudeStyle(TOOLS, options);
  return {
    host: "qwen",
    rewrites: "ignores",
    lineFor: (_event, approved) => approved,
    startsTogether: false,
    refusedStops: 8,
    read: (event, payload) => readClaudeStyle(event, payload, map),
    answer: (event, decision) => claudeAnswer(event, decision),
    refuse: (event, reason) => claudeRefusal(event, reason),
  };
}
