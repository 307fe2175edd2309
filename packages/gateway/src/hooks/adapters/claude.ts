import { isJsonObject, type Json } from "@sluice/core";
import type { HostName } from "../../host-names.ts";
import type { AdapterOptions, HookAdapter, HookEvent, LifeEvent, MappedCall } from "../hook-adapter.ts";
import { claudeAnswer, claudeRefusal } from "./claude-answers.ts";
import {
  callIn,
  eventName,
  type Fields,
  nativePath,
  originIn,
  outputIn,
  payloadObject,
  RefusedCall,
  textIn,
} from "./fields.ts";
import {
  agent,
  call,
  editTool,
  fetchTool,
  glob,
  harmless,
  ignoring,
  listTool,
  type MapTool,
  mapClaudeStyle,
  notebookTool,
  type ReadTool,
  readTool,
  replacements,
  search,
  shell,
  type ToolTable,
  webSearchTool,
  writeTool,
} from "./mapping.ts";

const TOOLS: ToolTable = new Map<string, ReadTool>([
  [
    "Bash",
    (fields, cwd) => {
      if (fields.flag("dangerouslyDisableSandbox"))
        throw new RefusedCall("dangerouslyDisableSandbox is not accepted; run the command without it");
      const background = fields.flag("run_in_background");
      return shell(fields.text("command"), cwd, { background, ...fields.options("timeout", "description") });
    },
  ],
  ["Read", readTool(["file_path"], "offset", "limit", "pages", "allow_large")],
  ["Write", writeTool("file_path", "content")],
  ["Edit", editTool("file_path", { old: "old_string", now: "new_string", all: "replace_all" })],
  ["MultiEdit", (fields, cwd) => replacements(nativePath(fields.text("file_path"), cwd), fields.list("edits"))],
  ["NotebookEdit", notebookTool],
  ["Glob", (fields, cwd) => glob(fields, cwd, "path")],
  [
    "Grep",
    (fields, cwd) =>
      search(fields, cwd, {
        paths: ["path"],
        filters: ["glob"],
        options: [
          "output_mode",
          "-A",
          "-B",
          "-C",
          "context",
          "-n",
          "-i",
          "-o",
          "type",
          "head_limit",
          "offset",
          "multiline",
        ],
      }),
  ],
  ["LS", ignoring(["ignore"], listTool("path"))],
  ["WebFetch", ignoring(["prompt", "offset"], fetchTool)],
  [
    "Monitor",
    (fields, cwd) =>
      shell(fields.text("command"), cwd, { background: true, ...fields.options("description", "timeout_ms") }),
  ],
  ["WebSearch", webSearchTool("allowed_domains", "blocked_domains")],
  ["Agent", agentCall],
  ["Task", agentCall],
  ["Skill", (fields) => call("Skill", fields.options("skill", "args"), true)],
  ["SlashCommand", (fields) => call("Skill", fields.options("command"), true)],
  ...harmless(
    "AskUserQuestion",
    "BashOutput",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillBash",
    "KillShell",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
  ),
]);

function agentCall(fields: Fields): MappedCall {
  return agent(
    fields,
    "description",
    "prompt",
    "subagent_type",
    "model",
    "effort",
    "run_in_background",
    "resume",
    "name",
    "max_turns",
  );
}

/** Claude Code. Its hooks over HTTP send the same payloads as its commands; the gateway uses commands, whose answers carry a proof. */
export function claudeAdapter(options?: AdapterOptions): HookAdapter {
  return claudeStyleAdapter("claude", { tools: TOOLS }, options);
}

/** An adapter of a host that speaks the protocol of Claude Code. */
export function claudeStyleAdapter(
  host: HostName,
  {
    tools,
    rewrites = "runs",
    lineFor = (_event, approved) => approved,
  }: { readonly tools: ToolTable } & Partial<Pick<HookAdapter, "rewrites" | "lineFor">>,
  options: AdapterOptions = {},
): HookAdapter {
  const map = mapClaudeStyle(tools, options);
  return {
    host,
    rewrites,
    lineFor,
    startsTogether: false,
    refusedStops: 8,
    read: (event, payload) => readClaudeStyle(event, payload, map),
    answer: (event, decision) => claudeAnswer(event, decision),
    refuse: (event, reason) => claudeRefusal(event, reason),
  };
}

const LIFE_EVENTS: ReadonlyMap<string, LifeEvent["kind"]> = new Map([
  ["SessionStart", "session_start"],
  ["SessionEnd", "session_end"],
  ["Stop", "stop"],
  ["SubagentStart", "subagent_start"],
  ["SubagentStop", "subagent_stop"],
  ["Elicitation", "elicitation"],
  ["ConfigChange", "config_change"],
]);

/** Reads the payloads that Claude Code, Codex and Qwen Code share. */
function readClaudeStyle(event: string | undefined, payload: Json, map: MapTool): HookEvent {
  const body = payloadObject(payload);
  const name = eventName(event, body, "hook_event_name");
  const base = originIn(body, { session: "session_id", agent: "agent_id" });
  const names = { tool: "tool_name", input: "tool_input", id: "tool_use_id" };
  const callOf = () => callIn(body, names, (tool, input) => map(tool, input, base.cwd));
  switch (name) {
    case "PreToolUse":
      return { ...base, kind: "pre", ...callOf() };
    case "PermissionRequest":
      return { ...base, kind: "permission", ...callOf() };
    case "PostToolUse":
      return {
        ...base,
        kind: "post",
        ...callOf(),
        result: { ok: isFine(body.tool_response), output: outputIn(body, "tool_response") },
      };
    case "PostToolUseFailure":
      return { ...base, kind: "post", ...callOf(), result: { ok: false, output: outputIn(body, "error") } };
    case "UserPromptSubmit":
      return { ...base, kind: "prompt", prompt: textIn(body, "prompt") };
    default:
      return { ...base, kind: LIFE_EVENTS.get(name) ?? "other", name };
  }
}

/** Whether a reported result says of itself that it failed. */
function isFine(result: Json | undefined): boolean {
  if (result === undefined || !isJsonObject(result)) return true;
  return result.is_error !== true && result.isError !== true && result.success !== false;
}
