import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { field, type Json } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Desk, desk, type Running } from "../support/command.ts";
import { COMMAND } from "../support/command-process.ts";
import { silent } from "../support/silent-transport.ts";

// Gateways of one folder, in processes of their own, and what the installed hooks of a host say to a call of its shell.

const WORKFLOW = {
  id: "plan-first",
  initial: "plan",
  states: {
    plan: { instructions: "Plan.", allowed_tools: ["Read"], on: { READY: "done", GIVE_UP: "failed" } },
    done: { type: "final" },
    failed: { type: "final", outcome: "failed" },
  },
};
const RELEASING = { ...WORKFLOW, meta: { on_final: "release" } };

const OVER_STDIO = ["gateway", "--workflow", "plan-first", "--trust", "--hooks", "claude", "--no-wait"];
const GATEWAY = [...OVER_STDIO, "--http"];

/** A desk with the hooks of Claude Code. */
async function hookedDesk(
  whenIdle: "allow" | "deny" = "allow",
  { scope = "project", workflow = WORKFLOW }: { readonly scope?: Scope; readonly workflow?: object } = {},
): Promise<Desk> {
  const here = desk();
  here.write(".sluice/workflows/plan-first.json", JSON.stringify(workflow));
  await here.sluice(["hook", "install", "claude", "--when-idle", whenIdle, "--scope", scope, "--yes"]);
  return here;
}
type Scope = "project" | "user";

async function serving(here: Desk): Promise<Running> {
  const running = here.start(GATEWAY);
  await running.said("stdout", TOKEN);
  return running;
}
const TOKEN = /^MCP {4}(\S+)\ntoken {2}(\S+)$/m;

async function end(running: Running, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  running.child.kill(signal);
  await running.ended;
}

/** The session's agent leaves the phase. */
async function transition(running: Running, event: string): Promise<void> {
  const [, url = "", token = ""] = await running.said("stdout", TOKEN);
  const client = new Client({ name: "agent", version: "1.0.0" });
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(silent(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })));
  await client.callTool({ name: "transition", arguments: { event, data: { rationale: "x" } } });
  await client.close();
}

interface Hooked {
  readonly event?: string;
  readonly scope?: Scope;
  readonly cwd?: string;
}

/** Runs the installed hook of an event, for a shell command of a session. */
function hook(
  here: Desk,
  session: string,
  { event = "PreToolUse", scope = "project", cwd = here.folder }: Hooked = {},
) {
  const file =
    scope === "user"
      ? join(dirname(here.folder), "home", ".claude", "settings.json")
      : join(here.folder, ".claude", "settings.local.json");
  const settings: Json = JSON.parse(readFileSync(file, "utf8"));
  const [group] = listAt(field(settings, "hooks"), event);
  const [installed] = listAt(group, "hooks");
  const call = { tool_name: "Bash", tool_use_id: "toolu_1", tool_input: { command: "touch made" } };
  return spawnSync("/bin/sh", ["-c", String(field(installed, "command"))], {
    cwd,
    input: JSON.stringify({ session_id: session, cwd, hook_event_name: event, ...call }),
    encoding: "utf8",
    env: { PATH: process.env.PATH },
  });
}

function listAt(value: Json | undefined, key: string): readonly Json[] {
  const found = field(value, key);
  return Array.isArray(found) ? found : [];
}

/** What the host does with a shell command of a session: `gate` refuses it with the gateway's words, `hook` with its own. */
function decisionOf(here: Desk, session: string, hooked: Hooked = {}): "gate" | "hook" | "runs" {
  const { status, stdout } = hook(here, session, hooked);
  if (status === 2) return "hook";
  return stdout.includes('"deny"') ? "gate" : "runs";
}

test("a second gateway of a folder is refused with the first one's process, and the hooks still ask the first one", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  const second = await here.sluice(GATEWAY);
  expect(second).toMatchObject({ code: 4, stdout: "" });
  expect(second.stderr).toContain(`process ${first.child.pid} answers the hooks of claude in ${here.folder} already`);
  expect(second.stderr).toContain("end that gateway or its session first, or work in another folder");
  expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["gate", "gate"]);
});

test("a folder's hooks can be served for another host at the same time", async () => {
  const here = await hookedDesk();
  await serving(here);
  const other = here.start(GATEWAY.map((word) => (word === "claude" ? "gemini" : word)));
  await other.said("stdout", /^token {2}(\S+)$/m);
});

test("a gateway takes the place of one that was killed", async () => {
  const here = await hookedDesk();
  await end(await serving(here), "SIGKILL");
  expect(decisionOf(here, "s1")).toBe("hook");
  await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
});

test("a gateway that ends leaves the hooks of another one in place", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  // With the file of the first gateway, and what keeps a second one away.
  rmSync(join(dirname(here.folder), "state", "sluice", "gateways"), { recursive: true });
  await serving(here);
  await end(first);
  expect(decisionOf(here, "s2")).toBe("gate");
});

test.each<["again" | "in part"]>([["again"], ["in part"]])(
  "hooks that are removed %s while a gateway answers them stay bound to it, and no other gateway takes its session",
  async (how) => {
    const here = await hookedDesk();
    const first = await serving(here);
    expect(decisionOf(here, "s1")).toBe("gate");
    const scope = how === "again" ? "project" : "user";
    const install = () => here.sluice(["hook", "install", "claude", "--when-idle", "allow", "--scope", scope, "--yes"]);
    if (scope === "user") await install();
    const removed = await here.sluice(["hook", "remove", "claude", "--yes"]);
    expect(removed.stdout).toContain(`(process ${first.child.pid}) keeps its session until it ends`);
    if (scope === "project") await install();
    expect(decisionOf(here, "s1", { scope })).toBe("gate");
    expect((await here.sluice(GATEWAY)).stderr).toContain("answers the hooks of claude");
    await end(first);
    expect([decisionOf(here, "s1", { scope }), decisionOf(here, "s2", { scope })]).toEqual(["hook", "runs"]);
  },
);

test("hooks of one scope that are removed leave a session bound for those of the other one", async () => {
  const here = await hookedDesk();
  await here.sluice(["hook", "install", "claude", "--when-idle", "allow", "--scope", "user", "--yes"]);
  const running = await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
  await end(running);
  await here.sluice(["hook", "remove", "claude", "--yes"]);
  expect(decisionOf(here, "s1", { scope: "user" })).toBe("hook");
});

test("a gateway that is started while the last one ends takes its place", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  first.child.kill("SIGTERM");
  await serving(here);
  await first.ended;
  expect(decisionOf(here, "s2")).toBe("gate");
});

describe("after a gateway, calls of a session that drove its run are refused by hooks that allow others when idle", () => {
  const ENDS: Readonly<Record<string, (running: Running) => Promise<void>>> = {
    "the agent gave up": (running) => transition(running, "GIVE_UP"),
    "the run completed": (running) => transition(running, "READY"),
    "a signal ended the gateway": async (running) => void running.child.kill("SIGTERM"),
  };
  test.each(Object.keys(ENDS))("%s", async (how) => {
    const here = await hookedDesk();
    const running = await serving(here);
    expect(decisionOf(here, "s1")).toBe("gate");
    await ENDS[how]?.(running);
    await running.ended;
    expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["hook", "runs"]);
    expect(hook(here, "s1").stderr).toContain("sluice gateway --hooks claude, with --resume and the run");
  });

  test("the host closed a gateway that it had started", async () => {
    const here = await hookedDesk();
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [COMMAND, ...OVER_STDIO],
      cwd: here.folder,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: join(dirname(here.folder), "home"),
        XDG_STATE_HOME: join(dirname(here.folder), "state"),
      },
      stderr: "ignore",
    });
    const client = new Client({ name: "agent", version: "1.0.0" });
    onTestFinished(() => client.close());
    await client.connect(silent(transport));
    expect(decisionOf(here, "s1")).toBe("gate");
    await client.close();
    expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["hook", "runs"]);
  });
});

test("with on_final: release, a completed run frees its session, and a failed one does not", async () => {
  for (const [event, decision] of [
    ["READY", "runs"],
    ["GIVE_UP", "hook"],
  ] as const) {
    const here = await hookedDesk("allow", { workflow: RELEASING });
    const running = await serving(here);
    expect(decisionOf(here, "s1")).toBe("gate");
    await transition(running, event);
    await running.ended;
    expect([event, decisionOf(here, "s1")]).toEqual([event, decision]);
  }
});

test("a session is free once it has ended, before or after its gateway", async () => {
  for (const isFirst of [true, false]) {
    const here = await hookedDesk();
    const running = await serving(here);
    expect(decisionOf(here, "s1")).toBe("gate");
    if (isFirst) hook(here, "s1", { event: "SessionEnd" });
    await end(running);
    hook(here, "s2", { event: "SessionEnd" });
    expect(decisionOf(here, "s1")).toBe(isFirst ? "runs" : "hook");
    hook(here, "s1", { event: "SessionEnd" });
    expect(decisionOf(here, "s1")).toBe("runs");
  }
});

test("a session stays bound through a gateway that it does not drive, until a session drives the next one", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
  await end(first);
  await end(await serving(here));
  expect(decisionOf(here, "s1")).toBe("hook");
  const third = await serving(here);
  expect(decisionOf(here, "s2")).toBe("gate");
  await end(third);
  expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["runs", "hook"]);
});

test("the session of a killed gateway stays bound through one that it does not drive", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
  await end(first, "SIGKILL");
  expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["hook", "hook"]);
  await end(await serving(here));
  expect([decisionOf(here, "s1"), decisionOf(here, "s2")]).toEqual(["hook", "runs"]);
});

test("removing the hooks frees the session, also for hooks that are installed later", async () => {
  const here = await hookedDesk();
  const running = await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
  await end(running);
  await here.sluice(["hook", "remove", "claude", "--yes"]);
  await here.sluice(["hook", "install", "claude", "--when-idle", "allow", "--yes"]);
  expect(decisionOf(here, "s1")).toBe("runs");
});

test("after a session whose id a payload can escape in several ways, every session is refused", async () => {
  const here = await hookedDesk();
  const running = await serving(here);
  const odd = `s'1" $(touch made) \\ é`;
  expect(decisionOf(here, odd)).toBe("gate");
  await end(running);
  hook(here, odd, { event: "SessionEnd" });
  expect([decisionOf(here, odd), decisionOf(here, "s2")]).toEqual(["hook", "hook"]);
});

test("hooks of the user refuse a bound session in the folder of its gateway and below it", async () => {
  const here = await hookedDesk("allow", { scope: "user" });
  const cwd = join(here.folder, "src", "deep");
  mkdirSync(cwd, { recursive: true });
  const running = await serving(here);
  expect(decisionOf(here, "s1", { scope: "user", cwd })).toBe("gate");
  await end(running);
  const decisions = ["s1", "s2"].map((session) => decisionOf(here, session, { scope: "user", cwd }));
  expect(decisions).toEqual(["hook", "runs"]);
});

test("hooks that refuse when idle say the same to every session after a gateway", async () => {
  const here = await hookedDesk("deny");
  const running = await serving(here);
  expect(decisionOf(here, "s1")).toBe("gate");
  await end(running);
  for (const session of ["s1", "s2"])
    expect(hook(here, session)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("Start one: sluice gateway"),
    });
});
