import { join } from "node:path";
import { type Host, type HostPlan, jsonFile, type LaunchRequest, SHELL_NOTE, TOKEN_VARIABLE } from "./host.ts";

/** Milliseconds. A call may wait for a person. */
const CALL_TIMEOUT = 3_600_000;

export const opencode: Host = {
  name: "opencode",
  title: "opencode",
  command: "opencode",
  package: "opencode-ai",
  measured: ["1.18.33", "1.18.33"],
  arguments: {
    flags: ["--print-logs", "--continue", "-c", "--fork", "--thinking", "--pure", "--interactive", "-i", "--mini"],
    values: [
      "--model",
      "-m",
      "--session",
      "-s",
      "--format",
      "--log-level",
      "--title",
      "--variant",
      "--prompt",
      "--file",
      "-f",
    ],
    refused: {
      "--agent": "an agent of the project has permissions of its own",
      "--auto": "it approves calls without a person",
      "--command": "a command of the project can run a shell that no hook sees",
      "--attach": "the session would run elsewhere",
      "--dir": "the agent would work in another folder",
      "--port": "the session could be driven from elsewhere",
      "--hostname": "the session could be driven from elsewhere",
      "--mdns": "the session could be driven from elsewhere",
      "--cors": "the session could be driven from elsewhere",
      "--share": "it publishes the session",
    },
    prompts: ["--prompt"],
    commands: ["run"],
    words: true,
  },
  plan: (request) => (request.mode === "hard" ? gatewayTools(request) : hooked(request)),
  prompt: (task, command) => (command === "run" ? ["--", task] : [`--prompt=${task}`]),
};

const IGNORED = [
  "opencode.json and .opencode/ of the project",
  "everything in the user's configuration except providers and models",
];
/** An agent's permissions come after all others, so the session runs as an agent that only the gateway defines. */
const AGENT = "sluice-gateway";
const BUILT_IN_AGENTS = ["build", "plan", "general", "explore"];
/** What a configuration of the user keeps: where models come from. */
const KEPT = ["provider", "model", "small_model", "disabled_providers", "enabled_providers"];

function gatewayTools(request: LaunchRequest): HostPlan {
  return {
    form: "gateway tools only",
    args: ["--pure"],
    env: environment(request, { "*": "deny", [`${request.server}_*`]: "allow" }, []),
    files: [userConfig(request)],
    ignores: [...IGNORED, "plugins"],
    notes: ["Commands with a shell part, and what you type after !, are run by opencode itself, as your own act."],
    ...weakened(request),
  };
}

function hooked(request: LaunchRequest): HostPlan {
  const plugin = join(request.folder, "opencode-gate.js");
  return {
    form: "hooks",
    args: [],
    // The plugin answers each question; without it, nothing runs.
    env: environment(request, { "*": "ask", [`${request.server}_*`]: "allow" }, [plugin]),
    files: [
      userConfig(request),
      {
        path: plugin,
        text: request.plugin ?? 'export const Gate = async () => { throw new Error("no gateway"); };\n',
      },
    ],
    ignores: IGNORED,
    notes: ["Commands with a shell part reach no hook.", SHELL_NOTE],
    ...weakened(request),
  };
}

/** No switch of opencode leaves out ~/.opencode. */
function weakened({ user }: LaunchRequest): Pick<HostPlan, "weaker"> {
  const found = ["opencode.json", "opencode.jsonc", "agent", "agents", "mode", "modes"].find((name) =>
    user.exists(join(user.home, ".opencode", name)),
  );
  return found === undefined ? {} : { weaker: `~/.opencode/${found} can define agents with permissions of their own` };
}

function configHome({ folder }: LaunchRequest): string {
  return join(folder, "config");
}

function userConfig(request: LaunchRequest) {
  const { home, env, read } = request.user;
  const folder = join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "opencode");
  const settings = ["config.json", "opencode.json", "opencode.jsonc"].map((name) => read(join(folder, name)) ?? {});
  const kept = settings.flatMap((one) => Object.entries(one).filter(([key]) => KEPT.includes(key)));
  return jsonFile(join(configHome(request), "opencode", "opencode.json"), Object.fromEntries(kept));
}

function environment(
  request: LaunchRequest,
  permission: Readonly<Record<string, string>>,
  plugins: readonly string[],
): HostPlan["env"] {
  return {
    [TOKEN_VARIABLE]: request.token,
    OPENCODE_PERMISSION: JSON.stringify(permission),
    XDG_CONFIG_HOME: configHome(request),
    OPENCODE_CONFIG: undefined,
    OPENCODE_CONFIG_DIR: undefined,
    OPENCODE_DISABLE_PROJECT_CONFIG: "1",
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      share: "disabled",
      autoupdate: false,
      permission,
      default_agent: AGENT,
      agent: {
        [AGENT]: { mode: "primary", description: "Works through the gateway.", permission },
        ...Object.fromEntries(BUILT_IN_AGENTS.map((name) => [name, { disable: true }])),
      },
      ...(plugins.length === 0 ? {} : { plugin: plugins }),
      mcp: {
        [request.server]: {
          type: "remote",
          url: `${request.url}/mcp`,
          headers: { Authorization: `Bearer {env:${TOKEN_VARIABLE}}` },
          oauth: false,
          enabled: true,
          timeout: CALL_TIMEOUT,
        },
      },
    }),
  };
}
