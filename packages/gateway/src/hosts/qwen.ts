import { join } from "node:path";
import { commandHooks, gatewaySettings, IGNORED, isolated } from "./gateway-settings.ts";
import { type Host, type HostPlan, jsonFile, type LaunchRequest, SHELL_NOTE, TOKEN_VARIABLE } from "./host.ts";

/** Tools that are not core tools and remain without this. */
const FURTHER_TOOLS = [
  "agent",
  "skill",
  "get_goal",
  "update_goal",
  "list_agents",
  "cron_create",
  "cron_delete",
  "cron_list",
];

export const qwen: Host = {
  name: "qwen",
  title: "Qwen Code",
  command: "qwen",
  package: "@qwen-code/qwen-code",
  measured: ["0.24.4", "0.24.4"],
  arguments: {
    flags: [
      "--debug",
      "-d",
      "--screen-reader",
      "--continue",
      "-c",
      "--yolo",
      "-y",
      "--fork-session",
      "--include-partial-messages",
    ],
    values: [
      "--model",
      "-m",
      "--fallback-model",
      "--prompt",
      "-p",
      "--prompt-interactive",
      "-i",
      "--output-format",
      "-o",
      "--input-format",
      "--output-style",
      "--resume",
      "-r",
      "--session-id",
      "--approval-mode",
      "--auth-type",
      "--openai-base-url",
      "--append-system-prompt",
      "--system-prompt",
      "--json-schema",
      "--max-session-turns",
      "--max-wall-time",
      "--max-tool-calls",
      "--chat-recording",
    ],
    refused: {
      "--core-tools": "it brings native tools back",
      "--exclude-tools": "it replaces the list of the gateway",
      "--allowed-tools": "it lets calls run without the gate",
      "--mcp-config": "it adds MCP servers that the gate does not see",
      "--allowed-mcp-server-names": "it adds MCP servers that the gate does not see",
      "--extensions": "an extension brings tools and MCP servers of its own",
      "-e": "an extension brings tools and MCP servers of its own",
      "--bare": "it switches hooks off",
      "--safe-mode": "it switches hooks and MCP servers off",
      "--include-directories": "it adds folders that the workflow does not know",
      "--add-dir": "it adds folders that the workflow does not know",
      "--sandbox": "the gateway is not reachable from the container",
      "-s": "the gateway is not reachable from the container",
      "--worktree": "the agent would work in another folder",
      "--openai-api-key": "a key in the arguments can be read by every process; put it into the environment",
      "--acp": "use sluice acp",
      "--experimental-lsp": "it starts programs that the project names",
      "--input-file": "the session could be driven from elsewhere",
    },
    prompts: ["--prompt", "-p", "--prompt-interactive", "-i"],
    commands: [],
    words: true,
  },
  plan: (request) => (request.mode === "hard" ? gatewayTools(request) : hooked(request)),
  prompt: (task) => [`--prompt-interactive=${task}`],
};

function gatewayTools(request: LaunchRequest): HostPlan {
  return {
    form: "gateway tools only",
    args: isolated(request),
    env: environment(request),
    files: [
      jsonFile(
        settingsFile(request),
        gatewaySettings(request, {
          tools: { core: ["none"], exclude: [...FURTHER_TOOLS] },
          disableAllHooks: true,
          permissions: { allow: [`mcp__${request.server}`] },
        }),
      ),
    ],
    ignores: [...IGNORED, "hooks, subagents and skills"],
    notes: ["What you type after ! or name with @ is run or read by Qwen Code itself, as your own act."],
  };
}

function hooked(request: LaunchRequest): HostPlan {
  return {
    form: "hooks",
    args: isolated(request),
    env: environment(request),
    files: [
      jsonFile(
        settingsFile(request),
        gatewaySettings(request, {
          disableAllHooks: false,
          hooks: commandHooks("qwen", request),
        }),
      ),
    ],
    ignores: IGNORED,
    notes: ["What you name with @ reaches no hook.", SHELL_NOTE],
  };
}

function settingsFile({ folder }: LaunchRequest): string {
  return join(folder, "qwen-settings.json");
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return {
    [TOKEN_VARIABLE]: request.token,
    QWEN_CODE_SYSTEM_SETTINGS_PATH: settingsFile(request),
    QWEN_CODE_SAFE_MODE: undefined,
    QWEN_CODE_SIMPLE: undefined,
  };
}
