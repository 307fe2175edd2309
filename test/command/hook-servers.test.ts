import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Json, JsonObject } from "@sluice/core";
import type { HostName } from "@sluice/gateway";
import { expect, test } from "vitest";
import { hookFileName, hookFolder } from "../../packages/gateway/src/hosts/install/published-hooks.ts";
import { type Desk, desk, type Running } from "../support/command.ts";

const WORKFLOW = JSON.stringify({
  id: "plan-first",
  initial: "plan",
  states: {
    plan: { instructions: "Plan.", allowed_tools: ["Read"], on: { READY: "done", STUCK: "failed" } },
    done: { type: "final" },
    failed: { type: "final", outcome: "failed" },
  },
});

interface HostTools {
  readonly event: string;
  payload(tool: string, server: string): JsonObject;
  /** How the host names a tool of a server. */
  tool(server: string, tool: string): string;
}

const doubled = (server: string, tool: string): string => `mcp__${server}__${tool}`;
const claudeStyle: HostTools = {
  event: "PreToolUse",
  payload: (tool_name) => ({ session_id: "s", cwd: "/w", hook_event_name: "PreToolUse", tool_name, tool_input: {} }),
  tool: doubled,
};
const HOSTS: Readonly<Record<HostName, HostTools>> = {
  claude: claudeStyle,
  codex: claudeStyle,
  qwen: claudeStyle,
  gemini: {
    event: "BeforeTool",
    payload: (tool_name, server_name) => ({
      session_id: "s",
      cwd: "/w",
      hook_event_name: "BeforeTool",
      tool_name,
      tool_input: {},
      mcp_context: { server_name, tool_name: "transition" },
    }),
    tool: (server, tool) => `mcp_${server}_${tool}`,
  },
  copilot: {
    event: "preToolUse",
    payload: (toolName) => ({ sessionId: "s", cwd: "/w", toolName, toolArgs: {} }),
    tool: (server, tool) => `${server}-${tool}`,
  },
  opencode: {
    event: "tool.execute.before",
    payload: (tool) => ({ tool }),
    tool: (server, tool) => `${server}_${tool}`,
  },
};

/** A gateway for the hooks of a host, and the name that it gives its server. */
async function gatewayFor(here: Desk, host: HostName): Promise<{ readonly running: Running; readonly name: string }> {
  here.write(".sluice/workflows/plan-first.json", WORKFLOW);
  const line = ["gateway", "--workflow", "plan-first", "--trust", "--hooks", host, "--http", "--no-wait"];
  const running = here.start(line);
  const [, name = ""] = await running.said("stdout", /^name {3}(\S+)$/m);
  return { running, name };
}

/** What the hook that a host runs says about a call of a server's tool. */
async function decisionOf(here: Desk, host: HostName, server: string): Promise<"allow" | "deny"> {
  const { event, payload, tool } = HOSTS[host];
  const file = join(hookFolder(join(dirname(here.folder), "state", "sluice"), here.folder), hookFileName(host));
  const named = tool(server, "transition");
  if (host === "opencode") return await pluginDecision(file, named);
  const { stdout } = spawnSync("/bin/sh", [file, event], {
    input: JSON.stringify(payload(named, server)),
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin" },
  });
  const said: Json = JSON.parse(stdout);
  return JSON.stringify(said).includes('"allow"') ? "allow" : "deny";
}

async function pluginDecision(file: string, tool: string): Promise<"allow" | "deny"> {
  const plugin: { SluiceGate(context: object): Promise<Record<string, (call: object, out: object) => Promise<void>>> } =
    await import(file);
  const hooks = await plugin.SluiceGate({ directory: "/w" });
  try {
    await hooks["tool.execute.before"]?.({ tool, sessionID: "s", callID: "c" }, { args: {} });
    return "allow";
  } catch {
    return "deny";
  }
}

test.each(["claude", "codex", "gemini", "qwen", "copilot", "opencode"] as const)(
  "%s: hooks pass the tools of the gateway's own server, and of no server that a project names like it",
  async (host) => {
    const here = desk();
    const { name } = await gatewayFor(here, host);
    expect(name).toMatch(/^sluice[0-9a-f]{8}$/);
    expect(await decisionOf(here, host, name)).toBe("allow");
    for (const posing of ["sluice", "sluicer", "sluice00000000", `${name}x`, name.slice(0, -1), name.toUpperCase()])
      expect([posing, await decisionOf(here, host, posing)]).toEqual([posing, "deny"]);
  },
);

test("each workspace has a name of its own, which stays", async () => {
  const [here, there] = [desk(), desk()];
  const { name, running } = await gatewayFor(here, "claude");
  running.child.kill("SIGTERM");
  await running.ended;
  expect((await gatewayFor(here, "claude")).name).toBe(name);
  expect((await gatewayFor(there, "claude")).name).not.toBe(name);
});

test.each(["claude", "gemini", "qwen", "copilot", "opencode"] as const)(
  "%s: an installation leaves a server that the project calls sluice alone, and adds its own under its name",
  async (host) => {
    const here = desk();
    const file = { claude: ".mcp.json", copilot: ".mcp.json", opencode: "opencode.json" };
    const path = host === "gemini" || host === "qwen" ? `.${host}/settings.json` : file[host];
    const section = host === "opencode" ? "mcp" : "mcpServers";
    here.write(".sluice/workflows/plan-first.json", WORKFLOW);
    const foreign = { command: "sh", args: ["-c", "exit 1"] };
    here.write(path, JSON.stringify({ [section]: { sluice: foreign } }));
    const { stdout, code } = await here.sluice([
      ...["hook", "install", host, "--workflow", "plan-first", "--trust", "--yes"],
    ]);
    expect(code).toBe(0);
    const { name } = await gatewayFor(here, host);
    expect(stdout).toContain(`"${name}"`);
    const settings: Record<string, Record<string, Json>> = JSON.parse(readFileSync(join(here.folder, path), "utf8"));
    expect(Object.keys(settings[section] ?? {})).toEqual(["sluice", name]);
    expect(settings[section]?.sluice).toEqual(foreign);
  },
);

test("an installation replaces the server of an earlier one that had a name without a random part", async () => {
  const here = desk();
  here.write(".sluice/workflows/plan-first.json", WORKFLOW);
  const earlier = { command: "node", args: ["sluice.js", "gateway", "--workflow", "plan-first", "--hooks", "qwen"] };
  here.write(".qwen/settings.json", JSON.stringify({ mcpServers: { sluice: earlier } }));
  await here.sluice(["hook", "install", "qwen", "--workflow", "plan-first", "--trust", "--yes"]);
  const { name } = await gatewayFor(here, "qwen");
  const settings = JSON.parse(readFileSync(join(here.folder, ".qwen/settings.json"), "utf8"));
  expect(Object.keys(settings.mcpServers)).toEqual([name]);
});

test("a damaged key of the names is refused, because names would follow from nothing", async () => {
  const here = desk();
  const { running } = await gatewayFor(here, "claude");
  running.child.kill("SIGTERM");
  await running.ended;
  here.write("../state/sluice/server-names.key", "");
  const ended = await here.sluice(["gateway", "--workflow", "plan-first", "--hooks", "claude", "--http"]);
  expect(ended.code).toBe(4);
  expect(ended.stderr).toContain("server-names.key is damaged");
});
