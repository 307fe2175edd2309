import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { HOOK_EVENTS } from "../hooks/hook-events.ts";
import {
  HOOK_SECONDS,
  type Host,
  type HostPlan,
  jsonFile,
  type LaunchRequest,
  SHELL_NOTE,
  TOKEN_VARIABLE,
} from "./host.ts";

export const claude: Host = {
  name: "claude",
  title: "Claude Code",
  command: "claude",
  package: "@anthropic-ai/claude-code",
  measured: ["2.1.330", "2.1.330"],
  arguments: {
    flags: [
      "--print",
      "-p",
      "--continue",
      "-c",
      "--verbose",
      "--fork-session",
      "--ide",
      "--include-partial-messages",
      "--include-hook-events",
      "--no-session-persistence",
      "--replay-user-messages",
      "--dangerously-skip-permissions",
      "--ax-screen-reader",
      "--brief",
      "--no-chrome",
      "--disable-slash-commands",
    ],
    values: [
      "--model",
      "--fallback-model",
      "--effort",
      "--output-format",
      "--input-format",
      "--resume",
      "-r",
      "--session-id",
      "--name",
      "-n",
      "--append-system-prompt",
      "--system-prompt",
      "--max-budget-usd",
      "--json-schema",
      "--permission-mode",
      "--autocompact",
      "--betas",
    ],
    refused: {
      "--tools": "it brings native tools back",
      "--mcp-config": "it adds MCP servers that the gate does not see",
      "--settings": "it replaces the settings that hold the hooks",
      "--setting-sources": "it loads settings of the project",
      "--agents": "it adds agents with tools of their own",
      "--agent": "it adds an agent with tools of its own",
      "--allowedTools": "it lets calls run without the gate",
      "--allowed-tools": "it lets calls run without the gate",
      "--plugin-dir": "a plugin brings hooks and MCP servers of its own",
      "--plugin-url": "a plugin brings hooks and MCP servers of its own",
      "--permission-prompt-tool": "it answers permission requests in place of the gate",
      "--bare": "it switches hooks off",
      "--safe-mode": "it switches hooks off",
      "--add-dir": "it adds folders that the workflow does not know",
      "--bg": "the session would outlive the gateway",
      "--background": "the session would outlive the gateway",
      "--chrome": "it adds tools that the gate does not see",
      "--cloud": "the session would run elsewhere",
      "--remote-control": "the session could be driven from elsewhere",
      "--worktree": "the agent would work in another folder",
      "-w": "the agent would work in another folder",
    },
    prompts: [],
    commands: [],
    words: true,
  },
  plan: (request) =>
    request.mode === "hard" && request.native !== true ? gatewayTools(request) : nativeTools(request),
  prompt: (task) => ["--", task],
};

const IGNORED = [
  "settings of the user, the project and the local folder, with their hooks, permissions, plugins and environment",
  "MCP servers of the user and the project",
];

function gatewayTools(request: LaunchRequest): HostPlan {
  return {
    form: "gateway tools only",
    // Without a value nothing remains but the tools of the MCP server.
    args: [...isolated(request), "--tools="],
    env: environment(request),
    files: [
      mcpConfig(request),
      jsonFile(settingsFile(request), {
        ...basicSettings,
        permissions: { allow: [`mcp__${request.server}`], disableBypassPermissionsMode: "disable" },
        disableAllHooks: true,
      }),
    ],
    ignores: IGNORED,
    notes: ["What you type after ! or name with @ is read or run by Claude Code itself, as your own act."],
  };
}

function nativeTools(request: LaunchRequest): HostPlan {
  const inverted = request.mode === "hard";
  return {
    form: inverted ? "inverted default" : "hooks",
    args: isolated(request),
    env: environment(request),
    files: [
      mcpConfig(request),
      jsonFile(settingsFile(request), {
        ...basicSettings,
        // Read once, from here: what the agent writes to other settings files cannot remove the question.
        permissions: inverted
          ? { ask: ["*"], disableBypassPermissionsMode: "disable" }
          : { disableBypassPermissionsMode: "disable" },
        disableAllHooks: false,
        hooks: claudeHooks(request),
      }),
    ],
    ignores: IGNORED,
    notes: [SHELL_NOTE, "What you type after ! or name with @ reaches no hook."],
  };
}

const basicSettings: JsonObject = { disableSkillShellExecution: true, enableAllProjectMcpServers: false };

function isolated(request: LaunchRequest): readonly string[] {
  return [
    "--setting-sources=",
    `--settings=${settingsFile(request)}`,
    "--strict-mcp-config",
    `--mcp-config=${mcpFile(request)}`,
  ];
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return {
    [TOKEN_VARIABLE]: request.token,
    // Deferred tools would be called without their schema.
    ENABLE_TOOL_SEARCH: "false",
    CLAUDE_CODE_SIMPLE: undefined,
    CLAUDE_CODE_SAFE_MODE: undefined,
    // A call may wait for a person.
    MCP_TOOL_TIMEOUT: "3600000",
  };
}

function settingsFile({ folder }: LaunchRequest): string {
  return join(folder, "claude-settings.json");
}

function mcpFile({ folder }: LaunchRequest): string {
  return join(folder, "claude-mcp.json");
}

function mcpConfig(request: LaunchRequest) {
  return jsonFile(mcpFile(request), {
    mcpServers: {
      [request.server]: {
        type: "http",
        url: `${request.url}/mcp`,
        headers: { Authorization: `Bearer \${${TOKEN_VARIABLE}}` },
        alwaysLoad: true,
      },
    },
  });
}

/** A refusal of any kind, and no answer, deny the call. */
function claudeHooks({ hookCommand }: LaunchRequest): JsonObject {
  const group = (event: string, more: JsonObject): JsonObject => {
    const command = hookCommand?.(event) ?? "exit 2";
    return { matcher: "*", hooks: [{ type: "command", command, timeout: HOOK_SECONDS, ...more }] };
  };
  const { decide, report } = HOOK_EVENTS.claude;
  return Object.fromEntries([
    ...decide.map((event) => [event, [group(event, { onFailure: "block" })]] as const),
    ...report.map((event) => [event, [group(event, {})]] as const),
  ]);
}
