// How the tools of known agents are removed over ACP, so that only ours are left.
import type { NewSessionRequest } from "@agentclientprotocol/sdk";
import type { JsonObject } from "@sluice/core";

/** Agents whose own tools can be removed. */
export type AcpHost = "claude" | "gemini" | "opencode";

/** The name of our MCP server, which is part of the names of its tools in the agent. */
export const SERVER_NAME = "sluice";

/** What a start of the agent needs so that it has no tools of its own. */
export interface ToolRemoval {
  readonly meta?: NonNullable<NewSessionRequest["_meta"]>;
  readonly env?: Readonly<Record<string, string>>;
  /** A file to write, whose path is appended to the command after the option. */
  readonly policy?: { readonly option: string; readonly name: string; readonly text: string };
}

const GEMINI_POLICY = `[[rule]]
toolName = "*"
decision = "deny"
priority = 900

[[rule]]
mcpName = "${SERVER_NAME}"
toolName = "*"
decision = "allow"
priority = 950
`;

const OPENCODE_PERMISSION: JsonObject = { "*": "deny", [`${SERVER_NAME}_*`]: "allow" };

const REMOVALS: Readonly<Record<AcpHost, ToolRemoval>> = {
  // Settings of the user and the project could bring hooks, skills and servers back.
  claude: { meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } } },
  gemini: { policy: { option: "--admin-policy", name: "policy.toml", text: GEMINI_POLICY } },
  opencode: { env: { OPENCODE_PERMISSION: JSON.stringify(OPENCODE_PERMISSION) } },
};

export function isAcpHost(host: string): host is AcpHost {
  return Object.hasOwn(REMOVALS, host);
}

/** Nothing is removed from an agent that is not known. */
export function toolRemoval(host: AcpHost | undefined): ToolRemoval {
  return host === undefined ? {} : REMOVALS[host];
}

/** Whether a tool call that an agent asks about is one of our server. Agents write the names of MCP tools in their own ways. */
export function isOwnTool(...names: readonly (string | null | undefined)[]): boolean {
  return names.some((name) => /^(?:mcp(?:__|_))?sluice(?:__|_|\/|:| )/.test(name ?? ""));
}
