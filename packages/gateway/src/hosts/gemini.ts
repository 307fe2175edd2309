import { join } from "node:path";
import { field, type JsonObject } from "@sluice/core";
import { commandHooks, gatewaySettings, IGNORED, isolated } from "./gateway-settings.ts";
import { type Host, type HostPlan, jsonFile, type LaunchRequest, SHELL_NOTE, TOKEN_VARIABLE } from "./host.ts";

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

function gatewayTools(request: LaunchRequest): HostPlan {
  const policy = join(request.folder, "gemini-policy.toml");
  return {
    form: "gateway tools only",
    args: [...isolated(request), `--admin-policy=${policy}`],
    env: environment(request),
    files: [
      { path: policy, text: policyFor(request.server) },
      ...settingsFiles(request, { hooksConfig: { enabled: false }, skills: { enabled: false } }),
    ],
    ...ownHome(request),
    ignores: [...IGNORED, "hooks and skills"],
    notes: ["What you type after ! or name with @ is run or read by Gemini CLI itself, as your own act."],
  };
}

function hooked(request: LaunchRequest): HostPlan {
  return {
    form: "hooks",
    // The gate decides; questions of the host on top of it would stop a headless session.
    args: isolated(request),
    env: environment(request),
    files: settingsFiles(request, {
      hooksConfig: { enabled: true },
      hooks: commandHooks("gemini", request),
    }),
    ...ownHome(request),
    ignores: IGNORED,
    notes: ["What you name with @ reaches no hook.", SHELL_NOTE],
  };
}

/** The highest tier wins over every approval mode. */
function policyFor(server: string): string {
  return [
    "[[rule]]",
    'toolName = "*"',
    'decision = "deny"',
    "priority = 900",
    "",
    "[[rule]]",
    `mcpName = "${server}"`,
    'toolName = "*"',
    'decision = "allow"',
    "priority = 950",
    "",
  ].join("\n");
}

function settingsFile({ folder }: LaunchRequest): string {
  return join(folder, "gemini-settings.json");
}

/** The folder that Gemini CLI takes for the home of its user. */
function homeFolder({ folder }: LaunchRequest): string {
  return join(folder, "gemini");
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return {
    [TOKEN_VARIABLE]: request.token,
    GEMINI_CLI_SYSTEM_SETTINGS_PATH: settingsFile(request),
    GEMINI_CLI_HOME: homeFolder(request),
  };
}

/** What a user's folder keeps: the login, and which folders are trusted. */
const KEPT_FILES = ["oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "trustedFolders.json"];
/** Settings of a project that change neither tools nor servers nor hooks. */
const HARMLESS = ["$schema", "ui", "general", "model", "context"];

/**
 * Gemini CLI skips system settings that others than root could change. For everybody but root, the same settings are those of a user
 * of this run only, and a project's settings win over them.
 */
function ownHome(request: LaunchRequest): Pick<HostPlan, "links" | "weaker" | "atMost"> {
  const { user, workspace } = request;
  const links = KEPT_FILES.map((name) => ({
    path: join(homeFolder(request), ".gemini", name),
    target: join(user.env.GEMINI_CLI_HOME ?? user.home, ".gemini", name),
  }));
  const project = join(workspace, ".gemini", "settings.json");
  if (user.isOfRoot?.(settingsFile(request)) === true || !user.exists(project)) return { links };
  const settings = user.read(project);
  const found =
    settings === undefined ? "it cannot be read" : Object.keys(settings).find((key) => !HARMLESS.includes(key));
  if (found === undefined) return { links };
  const what = settings === undefined ? found : `it sets ${found}`;
  return {
    links,
    weaker: `The settings of this project, .gemini/settings.json, win over those of the gateway (${what}), so nothing is promised`,
    atMost: "advisory",
  };
}

/** System settings win over those of the project and of the user. */
function settingsFiles(request: LaunchRequest, settings: JsonObject): HostPlan["files"] {
  const { user } = request;
  const gateway = gatewaySettings(request, settings);
  const own = user.read(join(user.env.GEMINI_CLI_HOME ?? user.home, ".gemini", "settings.json")) ?? {};
  const auth = field(own.security, "auth");
  return [
    jsonFile(settingsFile(request), gateway),
    jsonFile(join(homeFolder(request), ".gemini", "settings.json"), {
      ...(auth === undefined ? {} : { security: { auth } }),
      ...(own.model === undefined ? {} : { model: own.model }),
      ...(own.ui === undefined ? {} : { ui: own.ui }),
      ...gateway,
    }),
  ];
}
