import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import type {
  AdapterOptions,
  HookAdapter,
  HookAnswer,
  HookDecision,
  HookEvent,
  LifeEvent,
  MappedCall,
} from "../hook-adapter.ts";
import { json, reasonOf, rewritten, whyNot } from "./claude-answers.ts";
import { callIn, eventName, originIn, outputIn, payloadObject, textIn } from "./fields.ts";
import {
  agent,
  call,
  editTool,
  fetched,
  glob,
  globFolder,
  harmless,
  ignoring,
  listTool,
  mapCall,
  mcpCall,
  type ReadTool,
  readTool,
  search,
  shell,
  type ToolTable,
  webSearchTool,
  writeTool,
} from "./mapping.ts";

const SEARCH = {
  paths: ["dir_path", "path"],
  filters: ["include", "include_pattern", "exclude_pattern"],
  options: [
    "case_sensitive",
    "fixed_strings",
    "context",
    "after",
    "before",
    "no_ignore",
    "max_matches_per_file",
    "names_only",
    "total_max_matches",
  ],
};

const TOOLS: ToolTable = new Map<string, ReadTool>([
  [
    "run_shell_command",
    (fields, cwd) =>
      shell(fields.text("command"), cwd, {
        background: fields.flag("is_background"),
        folder: fields.optionalText("dir_path") ?? fields.optionalText("directory"),
        ...fields.options("description", "delay_ms"),
      }),
  ],
  ["read_file", readTool(["file_path", "absolute_path"], "start_line", "end_line", "offset", "limit")],
  [
    "read_many_files",
    (fields, cwd) => {
      fields.options("exclude", "recursive", "useDefaultExcludes", "file_filtering_options");
      return call("Read", { folders: (fields.texts("include") ?? []).map((pattern) => globFolder(pattern, cwd)) });
    },
  ],
  ["write_file", writeTool("file_path", "content")],
  [
    "replace",
    ignoring(
      ["instruction", "expected_replacements"],
      editTool("file_path", { old: "old_string", now: "new_string", all: "allow_multiple" }),
    ),
  ],
  [
    "glob",
    (fields, cwd) => {
      fields.options("case_sensitive", "respect_git_ignore", "respect_gemini_ignore");
      return glob(fields, cwd, "dir_path", "path");
    },
  ],
  ["grep_search", (fields, cwd) => search(fields, cwd, SEARCH)],
  ["search_file_content", (fields, cwd) => search(fields, cwd, SEARCH)],
  [
    "list_directory",
    ignoring(["ignore", "file_filtering_options", "respect_git_ignore"], listTool("dir_path", "path")),
  ],
  ["web_fetch", (fields) => fetched(addressesIn(fields.text("prompt")))],
  ["google_web_search", webSearchTool()],
  ["activate_skill", (fields) => call("Skill", fields.options("name"), true)],
  ["delegate_to_agent", (fields) => agent(fields, "agent_name", "objective", "investigation_focus", "task")],
  ["invoke_agent", (fields) => agent(fields, "agent_name", "prompt")],
  ["codebase_investigator", (fields) => agent(fields, "objective")],
  ["generalist", (fields) => agent(fields, "request")],
  ...harmless(
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "get_internal_docs",
    "list_background_processes",
    "read_background_output",
    "update_topic",
    "write_todos",
  ),
]);

/** The addresses in a prompt: each word that is one, which the host fetches, and what a reader takes for one inside a word. */
function addressesIn(prompt: string): readonly string[] {
  const words = prompt.split(/\s+/).filter((word) => /^https?:$/.test(URL.parse(word)?.protocol ?? ""));
  return [...new Set([...words, ...(prompt.match(/https?:\/\/[^\s"'<>)\]]+/gi) ?? [])])];
}

const LIFE_EVENTS: ReadonlyMap<string, LifeEvent["kind"]> = new Map([
  ["SessionStart", "session_start"],
  ["SessionEnd", "session_end"],
  ["AfterAgent", "stop"],
]);

/** Gemini CLI. Its payloads name neither the call nor a subagent. */
export function geminiAdapter({ ownServers = [] }: AdapterOptions = {}): HookAdapter {
  return {
    host: "gemini",
    rewrites: "runs",
    lineFor: (_event, approved) => approved,
    startsTogether: true,
    refusedStops: 8,
    read: (event, payload) => readGemini(event, payload, ownServers),
    answer,
    refuse: (event, reason) =>
      event === "SessionStart" || event === "SessionEnd"
        ? json({})
        : json({ decision: "deny", reason: reasonOf(reason) }),
  };
}

function readGemini(event: string | undefined, payload: Json, ownServers: readonly string[]): HookEvent {
  const body = payloadObject(payload);
  const name = eventName(event, body, "hook_event_name");
  const base = originIn(body, { session: "session_id" });
  const names = { tool: "tool_name", input: "tool_input" };
  const callOf = () =>
    callIn(body, names, (tool, input) => mapGemini(tool, input, { body, cwd: base.cwd, ownServers }));
  switch (name) {
    case "BeforeTool":
      return { ...base, kind: "pre", ...callOf() };
    case "AfterTool": {
      const response = body.tool_response ?? null;
      const ok = !(isJsonObject(response) && response.error !== undefined && response.error !== null);
      return { ...base, kind: "post", ...callOf(), result: { ok, output: outputIn(body, "tool_response") } };
    }
    case "BeforeAgent":
      return { ...base, kind: "prompt", prompt: withoutContext(textIn(body, "prompt")) };
    default:
      return { ...base, kind: LIFE_EVENTS.get(name) ?? "other", name };
  }
}

/** The server and the tool are taken from `mcp_context`, since the name joins them with one underscore. */
function mapGemini(
  tool: string,
  input: JsonObject,
  {
    body,
    cwd,
    ownServers,
  }: { readonly body: JsonObject; readonly cwd: string; readonly ownServers: readonly string[] },
): MappedCall {
  const context = body.mcp_context;
  if (context === undefined) return mapCall(TOOLS, tool, input, cwd, ["wait_for_previous"]);
  if (!isJsonObject(context)) return { kind: "refused", reason: "mcp_context is not an object" };
  const { server_name: server, tool_name: name } = context;
  if (typeof server !== "string" || typeof name !== "string" || tool !== `mcp_${server}_${name}`)
    return { kind: "refused", reason: "mcp_context does not fit the tool's name" };
  return mcpCall(server, name, input, ownServers);
}

function answer(event: HookEvent, decision: HookDecision): HookAnswer {
  switch (event.kind) {
    case "pre":
    case "permission":
      if (decision.kind !== "allow") return json({ decision: "deny", reason: reasonOf(whyNot(decision)) });
      if (decision.command === undefined) return json({ decision: "allow" });
      return json({
        decision: "allow",
        hookSpecificOutput: { hookEventName: "BeforeTool", tool_input: rewritten(event, decision.command) },
      });
    case "prompt":
    case "session_start": {
      if (decision.kind === "block" || decision.kind === "deny")
        return json({ decision: "deny", reason: reasonOf(decision.reason) });
      if (decision.kind !== "context") return json({});
      const hookEventName = event.kind === "prompt" ? "BeforeAgent" : "SessionStart";
      return json({ hookSpecificOutput: { hookEventName, additionalContext: decision.text } });
    }
    case "stop":
      return decision.kind === "block" ? json({ decision: "deny", reason: reasonOf(decision.reason) }) : json({});
    default:
      return json({});
  }
}

/** What the user wrote: the host puts the texts of other hooks in front of it. */
function withoutContext(prompt: string): string {
  return prompt.replaceAll(/<hook_context>[\s\S]*?<\/hook_context>/g, "").trim();
}
