// How known agents are started over ACP without tools of their own, so that only ours are left.
import type { NewSessionRequest } from "@agentclientprotocol/sdk";
import type { PlannedFile } from "../../hosts/host.ts";
import { HOSTS } from "../../hosts/launch-plan.ts";
import { userPlaces } from "../../hosts/user-places.ts";

/** Agents that can be started without tools of their own. */
export type AcpHost = "claude" | "gemini" | "qwen" | "copilot" | "opencode";

/** Our MCP server for one process of an agent. */
export interface StageServer {
  /** Random: an agent's permission request for one of our tools is known by it. */
  readonly name: string;
  readonly url: string;
  readonly token: string;
}

export interface AgentStartRequest {
  readonly server: StageServer;
  readonly workspace: string;
  /** A folder of this process only. */
  readonly folder: string;
  /** Names of our tools. */
  readonly tools: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** What a start of the agent needs so that it has no tools of its own. */
export interface AgentStart {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly files: readonly PlannedFile[];
  readonly meta?: NonNullable<NewSessionRequest["_meta"]>;
  /** Whether the session names our server; otherwise the agent knows it from its configuration. */
  readonly namesServer: boolean;
  /** Where the agent keeps its login and its sessions. */
  readonly home: readonly string[];
  /** The versions that were seen without tools of their own; absent for an agent of which nothing is known. */
  readonly measured?: readonly [from: string, to: string];
  /** Why that does not hold with the user's configuration. */
  readonly weaker?: string;
}

const UNKNOWN: AgentStart = { args: [], env: {}, files: [], namesServer: true, home: [] };

/** The adapter takes the options with the session. Settings of the user and the project could bring hooks and servers back. */
const CLAUDE: AgentStart = {
  ...UNKNOWN,
  home: ["~/.claude", "~/.claude.json"],
  meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } },
  measured: ["0.101.0", "0.101.0"],
};

const HOMES: Readonly<Record<Exclude<AcpHost, "claude">, readonly string[]>> = {
  gemini: ["~/.gemini"],
  qwen: ["~/.qwen"],
  copilot: ["~/.copilot", "~/.config/github-copilot"],
  opencode: ["~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"],
};

export function isAcpHost(host: string): host is AcpHost {
  return host === "claude" || Object.hasOwn(HOMES, host);
}

/** The same switches as those of `sluice gateway run`. */
export function agentStart(host: AcpHost | undefined, request: AgentStartRequest): AgentStart {
  if (host === undefined) return UNKNOWN;
  if (host === "claude") return CLAUDE;
  const { server, workspace, folder, tools, env } = request;
  const {
    args,
    env: variables,
    files,
    weaker,
  } = HOSTS[host].plan({
    url: new URL(server.url).origin,
    token: server.token,
    workspace,
    folder,
    mode: "hard",
    server: server.name,
    tools,
    args: [],
    user: userPlaces(env),
  });
  return {
    args,
    // Over ACP, the session names the server, and the agent keeps the home of its user.
    env: { ...variables, GEMINI_CLI_HOME: env.GEMINI_CLI_HOME },
    files: host === "gemini" ? files.map((one) => withRules(one, server.name, tools)) : files,
    // The others load the servers of their configuration over ACP, and these do not.
    namesServer: host === "gemini" || host === "qwen",
    home: HOMES[host],
    measured: HOSTS[host].measured,
    ...(weaker === undefined ? {} : { weaker }),
  };
}

/** Over ACP, Gemini CLI asks its policy about a tool without naming the server: each tool needs a rule of its own. */
function withRules(file: PlannedFile, server: string, tools: readonly string[]): PlannedFile {
  if (!file.path.endsWith(".toml")) return file;
  const rules = tools.map(
    (tool) => `[[rule]]\ntoolName = ${JSON.stringify(`mcp_${server}_${tool}`)}\ndecision = "allow"\npriority = 950\n`,
  );
  return { path: file.path, text: [file.text, ...rules].join("\n") };
}

/** Whether a tool that an agent asks about is one of our server. Agents write the names of MCP tools in their own ways. */
export function isOwnTool({ name: server }: Pick<StageServer, "name">, tool: string): boolean {
  return new RegExp(`^(?:mcp__?)?${server}(?:__?|[-/: ])`).test(tool);
}
