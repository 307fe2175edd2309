import { join } from "node:path";

/**
 * The files of a project from which hosts take hooks, permissions, plugins and MCP servers. An agent that wrote one could end its own
 * guard, or decide what the next session of a host starts.
 */
export function hostSettingsFiles(project: string): readonly string[] {
  return NAMES.map((name) => join(project, name));
}

const NAMES = [
  ".mcp.json",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/hooks",
  ".codex",
  ".gemini/settings.json",
  ".gemini/extensions",
  ".gemini/.env",
  ".qwen/settings.json",
  ".qwen/extensions",
  ".qwen/.env",
  ".github/copilot",
  ".github/hooks",
  ".opencode/agent",
  ".opencode/agents",
  ".opencode/config.json",
  ".opencode/mode",
  ".opencode/modes",
  ".opencode/plugin",
  ".opencode/plugins",
  ".opencode/tool",
  ".opencode/tools",
  ".opencode/opencode.json",
  ".opencode/opencode.jsonc",
  ".opencode/package.json",
  "opencode.json",
  "opencode.jsonc",
];
