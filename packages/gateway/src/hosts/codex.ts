import { join } from "node:path";
import { allEvents } from "../hooks/hook-events.ts";
import {
  HOOK_SECONDS,
  type Host,
  type HostPlan,
  type LaunchRequest,
  type PlannedFile,
  SHELL_NOTE,
  TOKEN_VARIABLE,
} from "./host.ts";

/** Features that bring tools of their own. */
const TOOL_FEATURES = [
  "shell_tool",
  "unified_exec",
  "multi_agent",
  "goals",
  "apps",
  "plugins",
  "browser_use",
  "computer_use",
  "image_generation",
  "sleep_tool",
  "skill_mcp_dependency_install",
  "tool_suggest",
  "view_image",
  "worktrees",
];

/** Where the model comes from, and how hard it thinks. */
const HARMLESS_SETTING =
  /^(?:model|model_provider|model_providers\.[\w.-]+|model_reasoning_effort|model_verbosity)\s*=/;
const REPLACES = "it replaces what the gateway set";

export const codex: Host = {
  name: "codex",
  title: "Codex",
  command: "codex",
  package: "@openai/codex",
  measured: ["0.169.0", "0.169.0"],
  arguments: {
    flags: ["--json", "--skip-git-repo-check", "--ephemeral", "--oss", "--no-alt-screen", "--last"],
    values: [
      "--model",
      "-m",
      "--image",
      "-i",
      "--local-provider",
      "--output-schema",
      "--color",
      "-o",
      "--output-last-message",
    ],
    refused: {
      "-c": "only settings about the model are allowed, such as -c model=…, since others can lift the class",
      "--config":
        "only settings about the model are allowed, such as --config=model=…, since others can lift the class",
      "--enable": "it brings native tools back",
      "--disable": "it can switch hooks off",
      "--profile": "a profile can change any setting",
      "-p": "a profile can change any setting",
      "--sandbox": REPLACES,
      "-s": REPLACES,
      "--dangerously-bypass-approvals-and-sandbox": "it switches the sandbox off that refuses apply_patch",
      "--yolo": "it switches the sandbox off that refuses apply_patch",
      "--dangerously-bypass-hook-trust": "hooks of the project would run without your approval",
      "--approve-for-me": "a model would answer in place of the gate",
      "--trust": "it would save trust for this project",
      "--search": "hosted web search reaches no hook",
      "--add-dir": "it adds folders that the workflow does not know",
      "--cd": "the agent would work in another folder",
      "-C": "the agent would work in another folder",
      "--worktree": "the agent would work in another folder",
      "--remote": "the session would run elsewhere",
      "--ask-for-approval": REPLACES,
      "-a": REPLACES,
    },
    prompts: [],
    checked: { "-c": HARMLESS_SETTING, "--config": HARMLESS_SETTING },
    commands: ["exec", "e", "resume", "fork"],
    words: true,
  },
  plan: (request) => (request.mode === "hard" ? gatewayTools(request) : hooked(request)),
  prompt: (task) => ["--", task],
};

const IGNORED = [
  "config.toml, profiles, rules, hooks and MCP servers of the user (the login is used)",
  ".codex/ of the project: the project counts as untrusted",
];

function gatewayTools(request: LaunchRequest): HostPlan {
  return {
    form: "gateway tools only",
    args: [...disabled(TOOL_FEATURES), "--disable", "hooks", "-s", "read-only"],
    env: environment(request),
    files: [
      config(request, ['sandbox_mode = "read-only"', 'web_search = "disabled"', "[tools]", "view_image = false"]),
    ],
    links: [login(request)],
    ignores: IGNORED,
    notes: [
      "apply_patch stays visible to some models; the read-only sandbox refuses what it writes.",
      "What you type after ! is run by Codex itself, as your own act.",
    ],
  };
}

function hooked(request: LaunchRequest): HostPlan {
  return {
    form: "hooks",
    args: [
      // Each of these reaches no hook, or starts what reaches none.
      ...disabled(["unified_exec", "apps", "plugins", "browser_use", "computer_use", "goals"]),
      "--enable",
      "hooks",
      // The hooks are those of the file below, in a folder of this run only.
      "--dangerously-bypass-hook-trust",
      "-s",
      "workspace-write",
    ],
    env: environment(request),
    files: [config(request, ['sandbox_mode = "workspace-write"', 'web_search = "disabled"']), hookFile(request)],
    links: [login(request)],
    ignores: IGNORED,
    notes: [
      "Input to a running shell (write_stdin) and hosted web search reach no hook; hosted web search is switched off.",
      SHELL_NOTE,
    ],
  };
}

function disabled(features: readonly string[]): readonly string[] {
  return features.flatMap((feature) => ["--disable", feature]);
}

function environment(request: LaunchRequest): HostPlan["env"] {
  return { [TOKEN_VARIABLE]: request.token, CODEX_HOME: codexHome(request) };
}

function codexHome({ folder }: LaunchRequest): string {
  return join(folder, "codex");
}

function login(request: LaunchRequest) {
  const { home, env } = request.user;
  return {
    path: join(codexHome(request), "auth.json"),
    target: join(env.CODEX_HOME ?? join(home, ".codex"), "auth.json"),
  };
}

function config(request: LaunchRequest, lines: readonly string[]): PlannedFile {
  const text = [
    'approval_policy = "never"',
    ...lines,
    `[mcp_servers.${request.server}]`,
    `url = ${quoted(`${request.url}/mcp`)}`,
    `bearer_token_env_var = ${quoted(TOKEN_VARIABLE)}`,
    "required = true",
    // Seconds. A call may wait for a person.
    "tool_timeout_sec = 3600",
    'default_tools_approval_mode = "approve"',
    `[projects.${quoted(request.workspace)}]`,
    // A trusted project could add MCP servers and switch features on.
    'trust_level = "untrusted"',
    "",
  ].join("\n");
  return { path: join(codexHome(request), "config.toml"), text };
}

function hookFile(request: LaunchRequest): PlannedFile {
  const command = request.hookCommand;
  const hooks = Object.fromEntries(
    allEvents("codex").map((event) => [
      event,
      [{ matcher: "*", hooks: [{ type: "command", command: command?.(event) ?? "exit 2", timeout: HOOK_SECONDS }] }],
    ]),
  );
  return { path: join(codexHome(request), "hooks.json"), text: `${JSON.stringify({ hooks }, null, 2)}\n` };
}

/** A TOML basic string is a JSON string, except for code points that JSON does not escape. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
}
