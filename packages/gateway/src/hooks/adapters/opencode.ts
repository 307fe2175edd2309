import { isJsonObject, type Json } from "@sluice/core";
import type { AdapterOptions, HookAdapter, HookAnswer, HookDecision, HookEvent, LifeEvent } from "../hook-adapter.ts";
import { json, reasonOf, rewritten, whyNot } from "./claude-answers.ts";
import { callIn, eventName, nativePath, originIn, outputIn, payloadObject, textIn } from "./fields.ts";
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
  replacements,
  search,
  shell,
  type ToolTable,
  webSearchTool,
  writeTool,
} from "./mapping.ts";

const TOOLS: ToolTable = new Map<string, ReadTool>([
  [
    "bash",
    (fields, cwd) =>
      shell(fields.text("command"), cwd, {
        folder: fields.optionalText("workdir"),
        ...fields.options("description", "timeout"),
      }),
  ],
  ["read", readTool(["filePath"], "offset", "limit")],
  ["write", writeTool("filePath", "content")],
  ["edit", editTool("filePath", { old: "oldString", now: "newString", all: "replaceAll" })],
  ["multiedit", (fields, cwd) => replacements(nativePath(fields.text("filePath"), cwd), fields.list("edits"))],
  ["patch", (fields, cwd) => patch(fields.text("patchText"), cwd)],
  ["apply_patch", (fields, cwd) => patch(fields.text("patchText"), cwd)],
  ["glob", (fields, cwd) => glob(fields, cwd, "path")],
  ["grep", (fields, cwd) => search(fields, cwd, { paths: ["path"], filters: ["include"], options: [] })],
  [
    "list",
    (fields, cwd) => {
      fields.options("ignore");
      const path = fields.optionalText("path");
      return call("Glob", { pattern: "*", path: path === undefined ? cwd : nativePath(path, cwd) });
    },
  ],
  ["webfetch", ignoring(["format", "timeout"], fetchTool)],
  ["websearch", webSearchTool("numResults", "livecrawl", "type", "contextMaxCharacters")],
  ["codesearch", webSearchTool("tokensNum")],
  ["task", (fields) => agent(fields, "description", "prompt", "subagent_type", "task_id", "command")],
  ["skill", (fields) => call("Skill", fields.options("name"), true)],
  ...harmless("invalid", "plan_enter", "plan_exit", "question", "todoread", "todowrite"),
]);

const LIFE_EVENTS: ReadonlyMap<string, LifeEvent["kind"]> = new Map([
  ["session.start", "session_start"],
  ["session.idle", "stop"],
]);

/** opencode, through the plugin that is made by `opencodePlugin`. */
export function opencodeAdapter(options: AdapterOptions = {}): HookAdapter {
  const map = mapJoined(TOOLS, ["_"], options);
  return {
    host: "opencode",
    rewrites: "runs",
    lineFor: (_event, approved) => approved,
    startsTogether: false,
    // A turn of opencode ends without asking its plugins.
    refusedStops: 0,
    read: (event, payload) => readOpencode(event, payload, map),
    answer,
    refuse: (_event, reason) => json({ decision: "deny", reason: reasonOf(reason) }),
  };
}

function readOpencode(event: string | undefined, payload: Json, map: MapTool): HookEvent {
  const body = payloadObject(payload);
  const name = eventName(event, body, "event");
  const base = originIn(body, { session: "sessionID", agent: "agent" });
  const names = { tool: "tool", input: "args", id: "callID" };
  const callOf = () => callIn(body, names, (tool, input) => map(tool, input, base.cwd));
  switch (name) {
    case "tool.execute.before":
      return { ...base, kind: "pre", ...callOf() };
    case "tool.execute.after": {
      const output = outputIn(body, "output");
      return {
        ...base,
        kind: "post",
        ...callOf(),
        result: { ok: !(isJsonObject(output) && output.error !== undefined), output },
      };
    }
    case "chat.message":
      return { ...base, kind: "prompt", prompt: textIn(body, "prompt") };
    default:
      return { ...base, kind: LIFE_EVENTS.get(name) ?? "other", name };
  }
}

function answer(event: HookEvent, decision: HookDecision): HookAnswer {
  switch (event.kind) {
    case "pre":
    case "permission":
      if (decision.kind !== "allow") return json({ decision: "deny", reason: reasonOf(whyNot(decision)) });
      return json({
        decision: "allow",
        ...(decision.command === undefined ? {} : { args: rewritten(event, decision.command) }),
      });
    case "prompt":
    case "session_start":
      return json(decision.kind === "context" ? { decision: "allow", context: decision.text } : { decision: "allow" });
    default:
      return json({ decision: "allow" });
  }
}
