import { join } from "node:path";
import { allEvents } from "../hooks/hook-events.ts";
import {
  HOOK_SECONDS,
  type Host,
  type HostPlan,
  jsonFile,
  type LaunchRequest,
  SERVER_NAME,
  SHELL_NOTE,
  TOKEN_VARIABLE,
} from "./host.ts";

export const copilot: Host = {
  name: "copilot",
  title: "Copilot CLI",
  command: "copilot",
  package: "@github/copilot",
  measured: ["1.0.102", "1.0.102"],
  arguments: {
    flags: [
      "--continue",
      "--banner",
      "--screen-reader",
      "--plain-diff",
      "--silent",
      "-s",
      "--no-color",
      "--no-ask-user",
      "--no-custom-instructions",
      "--disable-client-telemetry",
      "--no-auto-update",
      "--trust-folder",
      "--no-mouse",
      "--disallow-temp-dir",
    ],
    values: [
      "--prompt",
      "-p",
      "--interactive",
      "-i",
      "--model",
      "--reasoning-effort",
      "--context",
      "--resume",
      "-r",
      "--name",
      "-n",
      "--session-id",
      "--output-format",
      "--stream",
      "--log-level",
      "--log-dir",
      "--max-ai-credits",
      "--usage-output-file",
    ],
    refused: {
      "--available-tools": "it brings native tools back",
      "--excluded-tools": "it replaces the list of the gateway",
      "--allow-all-tools": "native tools would run without a hook's yes",
      "--allow-all": "native tools would run without a hook's yes",
      "--yolo": "native tools would run without a hook's yes",
      "--allow-tool": "it lets calls run without the gate",
      "--allow-all-paths": "it lifts the host's own limits",
      "--additional-mcp-config": "it adds MCP servers that the gate does not see",
      "--enable-mcp-server": "it adds MCP servers that the gate does not see",
      "--plugin-dir": "a plugin brings hooks and tools of its own",
      "--extension-sdk-path": "an extension brings tools of its own",
      "--agent": "it adds an agent with tools of its own",
      "--fleet": "it starts agents that the gate does not see",
      "--add-dir": "it adds folders that the workflow does not know",
      "-C": "the agent would work in another folder",
      "--connect": "the session would run elsewhere",
      "--remote": "the session could be driven from elsewhere",
      "--assisted-approval": "a model would answer in place of the gate",
      "--acp": "use sluice acp",
      "--autopilot": "it continues without the agent being asked to",
      "--bash-env": "it runs a file before every command",
    },
    prompts: ["--prompt", "-p", "--interactive", "-i"],
    commands: [],
    words: false,
  },
  plan: (request) => (request.mode === "hard" ? gatewayTools(request) : hooked(request)),
  prompt: (task) => [`--interactive=${task}`],
};

function gatewayTools(request: LaunchRequest): HostPlan {
  return {
    form: "gateway tools only",
    args: [
      ...isolated(request),
      `--available-tools=${request.tools.map((tool) => `${request.server}-${tool}`).join(",")}`,
      `--allow-tool=${request.server}`,
    ],
    env: environment(request),
    files: [mcpConfig(request)],
    ignores: ["built-in MCP servers", "tools of the user's and the project's MCP servers"],
    notes: [
      "Hooks of a trusted project run when the session starts, as without the gateway.",
      "What you type after ! is run by Copilot CLI itself, as your own act.",
    ],
  };
}

function hooked(request: LaunchRequest): HostPlan {
  return {
    form: "hooks",
    // Without --allow-all-tools a missing hook means that nothing is written.
    args: [...isolated(request), `--allow-tool=${request.server}`, `--plugin-dir=${pluginFolder(request)}`],
    env: environment(request),
    files: [mcpConfig(request), ...hookFiles(request)],
    ignores: ["built-in MCP servers"],
    notes: [
      "Reading in the workspace and read-only commands run without a hook's yes when the hooks are switched off by the project.",
      SHELL_NOTE,
    ],
  };
}

function isolated(request: LaunchRequest): readonly string[] {
  return ["--disable-builtin-mcps", "--no-auto-update", `--additional-mcp-config=@${mcpFile(request)}`];
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return {
    [TOKEN_VARIABLE]: request.token,
    COPILOT_ALLOW_ALL: undefined,
    COPILOT_ASSISTED_APPROVAL: undefined,
    COPILOT_AUTO_UPDATE: "false",
  };
}

function mcpFile({ folder }: LaunchRequest): string {
  return join(folder, "copilot-mcp.json");
}

function mcpConfig(request: LaunchRequest) {
  return jsonFile(mcpFile(request), {
    mcpServers: {
      [request.server]: {
        type: "http",
        url: `${request.url}/mcp`,
        // The host does not read variables here; the file is private, the arguments are not.
        headers: { Authorization: `Bearer ${request.token}` },
        tools: ["*"],
        timeout: 3_600_000,
      },
    },
  });
}

function pluginFolder({ folder }: LaunchRequest): string {
  return join(folder, "copilot-plugin");
}

function hookFiles(request: LaunchRequest) {
  const hooks = Object.fromEntries(
    allEvents("copilot").map((event) => [
      event,
      [{ type: "command", bash: request.hookCommand?.(event) ?? "exit 2", timeoutSec: HOOK_SECONDS }],
    ]),
  );
  return [
    jsonFile(join(pluginFolder(request), "plugin.json"), {
      name: SERVER_NAME,
      version: "1.0.0",
      description: "Asks the gateway before each call.",
      hooks: "hooks.json",
    }),
    jsonFile(join(pluginFolder(request), "hooks.json"), { version: 1, hooks }),
  ];
}
