import type { HostName } from "../host-names.ts";

/** The events that a gateway hears of. A host runs a hook for each. */
export interface HookEvents {
  /** Their hook decides: without an answer, the host must refuse. */
  readonly decide: readonly string[];
  /** They are reported, or get text for the agent. */
  readonly report: readonly string[];
}

/** Of each host with command hooks. opencode has a plugin. */
export const HOOK_EVENTS: Readonly<Record<Exclude<HostName, "opencode">, HookEvents>> = {
  claude: {
    decide: ["PreToolUse", "PermissionRequest", "Elicitation", "ConfigChange"],
    report: [
      "PostToolUse",
      "PostToolUseFailure",
      "UserPromptSubmit",
      "SessionStart",
      "SessionEnd",
      "SubagentStart",
      "SubagentStop",
      "Stop",
    ],
  },
  codex: {
    decide: ["PreToolUse", "PermissionRequest"],
    report: ["PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "SubagentStart", "SubagentStop", "Stop"],
  },
  gemini: { decide: ["BeforeTool"], report: ["AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"] },
  qwen: {
    decide: ["PreToolUse", "PermissionRequest"],
    report: [
      "PostToolUse",
      "PostToolUseFailure",
      "UserPromptSubmit",
      "SessionStart",
      "SessionEnd",
      "SubagentStart",
      "SubagentStop",
      "Stop",
    ],
  },
  copilot: {
    decide: ["preToolUse", "permissionRequest"],
    report: [
      "postToolUse",
      "postToolUseFailure",
      "userPromptSubmitted",
      "sessionStart",
      "sessionEnd",
      "agentStop",
      "subagentStart",
      "subagentStop",
    ],
  },
};

export function allEvents(host: Exclude<HostName, "opencode">): readonly string[] {
  const { decide, report } = HOOK_EVENTS[host];
  return [...decide, ...report];
}
