import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import type {
  AdapterOptions,
  CallEvent,
  HookAdapter,
  HookAnswer,
  HookDecision,
  HookEvent,
  LifeEvent,
} from "../hook-adapter.ts";
import { json, reasonOf, rewritten, startingIn, whyNot } from "./claude-answers.ts";
import { callIn, eventName, optionalId, originIn, outputIn, payloadObject, RefusedCall, textIn } from "./fields.ts";
import {
  agent,
  call,
  editTool,
  fetchTool,
  glob,
  harmless,
  ignoring,
  type MapTool,
  mapJoined,
  patch,
  type ReadTool,
  readTool,
  search,
  shell,
  type ToolTable,
  webSearchTool,
  writeTool,
} from "./mapping.ts";

const SEARCH = {
  paths: ["paths", "path"],
  filters: ["glob"],
  options: ["output_mode", "-A", "-B", "-C", "-n", "-i", "type", "head_limit", "multiline"],
};

const TOOLS: ToolTable = new Map<string, ReadTool>([
  [
    "bash",
    (fields, cwd) => {
      const mode = fields.optionalText("mode") ?? "sync";
      if (mode !== "sync" && mode !== "async") throw new RefusedCall("mode is neither sync nor async");
      const isDetached = fields.flag("detach");
      return shell(fields.text("command"), cwd, {
        background: mode === "async" || isDetached,
        ...fields.options("description", "initial_wait", "timeout", "shellId"),
      });
    },
  ],
  ["view", readTool(["path"], "view_range", "forceReadLargeFiles")],
  ["create", writeTool("path", "file_text")],
  ["edit", editTool("path", { old: "old_str", now: "new_str" })],
  ["apply_patch", (fields, cwd) => patch(fields.oneOf("patch", "input"), cwd)],
  ["glob", (fields, cwd) => glob(fields, cwd, "paths", "path")],
  ["grep", (fields, cwd) => search(fields, cwd, SEARCH)],
  ["rg", (fields, cwd) => search(fields, cwd, SEARCH)],
  ["web_fetch", ignoring(["max_length", "start_index", "raw"], fetchTool)],
  ["web_search", webSearchTool()],
  [
    "task",
    (fields) =>
      agent(fields, "description", "prompt", "agent_type", "model", "reasoning_effort", "context_tier", "mode", "name"),
  ],
  ["skill", (fields) => call("Skill", fields.options("skill"), true)],
  ...harmless(
    "ask_user",
    "exit_plan_mode",
    "fetch_copilot_cli_documentation",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "report_intent",
    "stop_bash",
    "update_todo",
    "write_agent",
  ),
]);

const LIFE_EVENTS: ReadonlyMap<string, LifeEvent["kind"]> = new Map([
  ["sessionStart", "session_start"],
  ["sessionEnd", "session_end"],
  ["agentStop", "stop"],
  ["subagentStart", "subagent_start"],
  ["subagentStop", "subagent_stop"],
]);

/**
 * Copilot CLI. Its payloads do not name their event, so the hook's address does. A reused shell starts in a folder of its own, so an
 * approved line begins by changing to the folder that it was judged for.
 */
export function copilotAdapter(options: AdapterOptions = {}): HookAdapter {
  const map = mapJoined(TOOLS, ["-", "/"], options);
  /** The session that a subagent works for, by the subagent's own session. */
  const roots = new Map<string, string>();
  const rootOf = (agent: string, parent: string): string => {
    const root = roots.get(parent) ?? parent;
    if (roots.size >= MOST_AGENTS) roots.clear();
    roots.set(agent, root);
    return root;
  };
  return {
    host: "copilot",
    rewrites: "runs",
    lineFor: ({ cwd }, approved) => startingIn(cwd, approved),
    startsTogether: true,
    refusedStops: 8,
    read: (event, payload) => readCopilot(event, payload, map, rootOf),
    answer,
    refuse: (event, reason) => {
      if (event === "permissionRequest") return json({ behavior: "deny", message: reasonOf(reason) });
      if (event === "agentStop" || event === "subagentStop") return json({});
      return json({ permissionDecision: "deny", permissionDecisionReason: reasonOf(reason) });
    },
  };
}

const MOST_AGENTS = 1_000;

function readCopilot(
  event: string | undefined,
  payload: Json,
  map: MapTool,
  rootOf: (agent: string, parent: string) => string,
): HookEvent {
  const body = payloadObject(payload);
  const name = eventName(event, body, "hookName");
  const own = originIn(body, { session: "sessionId", agent: "agentId" });
  const parent = optionalId(body, "parentAgentId");
  // A subagent has a session of its own.
  const base = own.agent === undefined || parent === undefined ? own : { ...own, session: rootOf(own.agent, parent) };
  const callOf = (payload: JsonObject, input: string) =>
    callIn(payload, { tool: "toolName", input }, (tool, given) => map(tool, given, base.cwd));
  switch (name) {
    case "preToolUse":
      return { ...base, kind: "pre", ...callOf(withArguments(body), "toolArgs") };
    case "permissionRequest":
      return { ...base, kind: "permission", ...permissionOf(callOf(body, "toolInput")) };
    case "postToolUse":
    case "postToolUseFailure": {
      const result = body.toolResult ?? null;
      const ok = name === "postToolUse" && !(isJsonObject(result) && result.resultType === "failure");
      const output = body.toolResult === undefined ? outputIn(body, "error") : outputIn(body, "toolResult");
      return { ...base, kind: "post", ...callOf(withArguments(body), "toolArgs"), result: { ok, output } };
    }
    case "userPromptSubmitted":
      return { ...base, kind: "prompt", prompt: textIn(body, "prompt") };
    default:
      return { ...base, kind: LIFE_EVENTS.get(name) ?? "other", name };
  }
}

/** Writing is asked for by the file's path and a diff, whichever tool it is. */
function permissionOf(asked: Pick<CallEvent, "native" | "call">): Pick<CallEvent, "native" | "call"> {
  const { tool, input } = asked.native;
  const { file_path: path } = input;
  if (tool !== "edit" || typeof path !== "string") return asked;
  return { ...asked, call: { kind: "writes", path } };
}

/** The arguments are an object, or the text of one. */
function withArguments(body: JsonObject): JsonObject {
  if (typeof body.toolArgs !== "string") return body;
  const parsed = parseJson(body.toolArgs);
  return parsed.ok ? { ...body, toolArgs: parsed.value } : body;
}

function answer(event: HookEvent, decision: HookDecision): HookAnswer {
  switch (event.kind) {
    case "pre":
      if (decision.kind !== "allow")
        return json({ permissionDecision: "deny", permissionDecisionReason: reasonOf(whyNot(decision)) });
      if (decision.command === undefined) return json({ permissionDecision: "allow" });
      return json({
        permissionDecision: "allow",
        modifiedArgs: rewritten(event, decision.command),
      });
    case "permission":
      return decision.kind === "allow"
        ? json({ behavior: "allow" })
        : json({ behavior: "deny", message: reasonOf(whyNot(decision)) });
    case "prompt":
    case "session_start":
      return decision.kind === "context" ? json({ additionalContext: decision.text }) : json({});
    case "stop":
    case "subagent_stop":
      return decision.kind === "block" ? json({ decision: "block", reason: reasonOf(decision.reason) }) : json({});
    default:
      return json({});
  }
}
