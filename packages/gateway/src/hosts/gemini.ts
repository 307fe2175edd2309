import { join } from "node:path";
import { allEvents } from "./hook-events.ts";
import { type Host, type HostPlan, jsonFile, type LaunchRequest, SERVER_NAME, TOKEN_VARIABLE } from "./host.ts";

/** Milliseconds. */
const HOOK_TIMEOUT = 600_000;
/** Milliseconds. A call may wait for a person. */
const CALL_TIMEOUT = 3_600_000;

export const gemini: Host = {
  name: "gemini",
  title: "Gemini CLI",
  command: "gemini",
  package: "@google/gemini-cli",
  measured: ["0.61.0", "0.61.0"],
  arguments: {
    flags: ["--debug", "-d", "--screen-reader", "--skip-trust", "--yolo", "-y"],
    values: [
      "--model",
      "-m",
      "--prompt",
      "-p",
      "--prompt-interactive",
      "-i",
      "--output-format",
      "-o",
      "--resume",
      "-r",
      "--session-id",
      "--approval-mode",
    ],
    refused: {
      "--policy": "a policy can allow native tools",
      "--admin-policy": "a policy can allow native tools",
      "--allowed-tools": "it lets calls run without the gate",
      "--allowed-mcp-server-names": "it adds MCP servers that the gate does not see",
      "--extensions": "an extension brings tools and MCP servers of its own",
      "-e": "an extension brings tools and MCP servers of its own",
      "--include-directories": "it adds folders that the workflow does not know",
      "--sandbox": "the gateway is not reachable from the container",
      "-s": "the gateway is not reachable from the container",
      "--worktree": "the agent would work in another folder",
      "-w": "the agent would work in another folder",
      "--acp": "use sluice acp",
      "--session-file": "a session from a file is not the one that the gateway started",
    },
    prompts: ["--prompt", "-p", "--prompt-interactive", "-i"],
    commands: [],
    words: true,
  },
  plan: (request) => (request.mode === "hard" ? gatewayTools(request) : hooked(request)),
  prompt: (task) => [`--prompt-interactive=${task}`],
};

const IGNORED = [
  "extensions",
  "MCP servers of the user and the project",
  "settings of the user and the project that contradict the ones of the gateway",
];

function gatewayTools(request: LaunchRequest): HostPlan {
  const policy = join(request.folder, "gemini-policy.toml");
  return {
    form: "gateway tools only",
    args: [...isolated(), `--admin-policy=${policy}`],
    env: environment(request),
    files: [
      { path: policy, text: POLICY },
      systemSettings(request, { hooksConfig: { enabled: false }, skills: { enabled: false } }),
    ],
    ignores: [...IGNORED, "hooks and skills"],
    notes: ["What you type after ! or name with @ is run or read by Gemini CLI itself, as your own act."],
  };
}

function hooked(request: LaunchRequest): HostPlan {
  const hook = (event: string) => ({
    name: SERVER_NAME,
    type: "command",
    command: request.hookCommand?.(event) ?? "exit 2",
    timeout: HOOK_TIMEOUT,
  });
  return {
    form: "hooks",
    // The gate decides; questions of the host on top of it would stop a headless session.
    args: [...isolated()],
    env: environment(request),
    files: [
      systemSettings(request, {
        hooksConfig: { enabled: true },
        hooks: Object.fromEntries(
          allEvents("gemini").map((event) => [event, [{ matcher: "*", hooks: [hook(event)] }]]),
        ),
      }),
    ],
    ignores: IGNORED,
    notes: [
      "What you name with @ reaches no hook.",
      "The agent has a shell with your rights: it can read what you can read, and stop the gateway.",
    ],
  };
}

/** The highest tier wins over every approval mode. */
const POLICY = [
  "[[rule]]",
  'toolName = "*"',
  'decision = "deny"',
  "priority = 900",
  "",
  "[[rule]]",
  `mcpName = "${SERVER_NAME}"`,
  'toolName = "*"',
  'decision = "allow"',
  "priority = 950",
  "",
].join("\n");

function isolated(): readonly string[] {
  return [`--allowed-mcp-server-names=${SERVER_NAME}`, "--extensions=none"];
}

function settingsFile({ folder }: LaunchRequest): string {
  return join(folder, "gemini-settings.json");
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return { [TOKEN_VARIABLE]: request.token, GEMINI_CLI_SYSTEM_SETTINGS_PATH: settingsFile(request) };
}

/** System settings win over those of the project and of the user. */
function systemSettings(request: LaunchRequest, settings: Parameters<typeof jsonFile>[1]) {
  return jsonFile(settingsFile(request), {
    mcp: { allowed: [SERVER_NAME] },
    mcpServers: {
      [SERVER_NAME]: {
        httpUrl: `${request.url}/mcp`,
        headers: { Authorization: `Bearer $${TOKEN_VARIABLE}` },
        timeout: CALL_TIMEOUT,
        trust: true,
      },
    },
    ...settings,
  });
}
