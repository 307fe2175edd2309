import type { JsonObject } from "@sluice/core";
import type { CallEvent, HookAnswer, HookDecision, HookEvent } from "../hook-adapter.ts";

export function json(body: JsonObject): HookAnswer {
  return { status: 200, body: JSON.stringify(body) };
}

/** A reason for a model: never empty, because some hosts run a call whose denial has none. */
export function reasonOf(reason: string): string {
  return reason.trim() === "" ? "The permission gate denied this call." : reason;
}

/** The input with the line that may run. */
export function rewritten({ native }: CallEvent, command: string): JsonObject {
  return { ...native.input, command };
}

/** A line that runs in this folder or not at all. */
export function startingIn(folder: string, line: string): string {
  return `cd -- '${folder.replaceAll("'", `'\\''`)}' || exit 1\n${line}`;
}

/** The answers of Claude Code's hooks, whose schema Codex and Qwen Code share. */
export function claudeAnswer(event: HookEvent, decision: HookDecision): HookAnswer {
  switch (event.kind) {
    case "pre":
      if (decision.kind !== "allow") return preDenied(whyNot(decision));
      return json({
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "allow",
          ...(decision.command === undefined ? {} : { updatedInput: rewritten(event, decision.command) }),
        },
      });
    case "permission":
      return decision.kind === "allow" ? permission({ behavior: "allow" }) : permissionDenied(whyNot(decision));
    case "prompt":
      return decision.kind === "context" ? context("UserPromptSubmit", decision.text) : blockOr(decision);
    case "session_start":
      return decision.kind === "context" ? context("SessionStart", decision.text) : json({});
    case "stop":
    case "subagent_stop":
    case "config_change":
      return blockOr(decision);
    case "post":
    case "session_end":
    case "subagent_start":
    case "elicitation":
    case "other":
      return json({});
  }
}

/** The refusal of a payload that could not be read, for the event that the hook is for. */
export function claudeRefusal(event: string | undefined, reason: string): HookAnswer {
  switch (event) {
    case "PermissionRequest":
      return permissionDenied(reason);
    case "ConfigChange":
    case "UserPromptSubmit":
      return blockOr({ kind: "block", reason });
    case "Stop":
    case "SubagentStop":
      return json({});
    default:
      return preDenied(reason);
  }
}

export function whyNot(decision: HookDecision): string {
  return decision.kind === "deny" || decision.kind === "block" ? decision.reason : "The gate gave no decision.";
}

function preDenied(reason: string): HookAnswer {
  return json({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: reasonOf(reason),
    },
  });
}

function permission(decision: JsonObject): HookAnswer {
  return json({ hookSpecificOutput: { hookEventName: "PermissionRequest", decision } });
}

function permissionDenied(reason: string): HookAnswer {
  return permission({ behavior: "deny", message: reasonOf(reason) });
}

function context(hookEventName: string, additionalContext: string): HookAnswer {
  return json({ hookSpecificOutput: { hookEventName, additionalContext } });
}

function blockOr(decision: HookDecision): HookAnswer {
  if (decision.kind !== "block" && decision.kind !== "deny") return json({});
  return json({ decision: "block", reason: reasonOf(decision.reason) });
}
