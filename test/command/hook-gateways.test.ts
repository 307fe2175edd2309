import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { field, type Json } from "@sluice/core";
import { expect, test } from "vitest";
import { type Desk, desk, type Running } from "../support/command.ts";

// Gateways of one folder, in processes of their own, and what the installed hooks of a host say to a call of its shell.

const WORKFLOW = JSON.stringify({
  id: "plan-first",
  initial: "plan",
  states: {
    plan: { instructions: "Plan.", allowed_tools: ["Read"], on: { READY: "done", GIVE_UP: "failed" } },
    done: { type: "final" },
    failed: { type: "final", outcome: "failed" },
  },
});

const GATEWAY = ["gateway", "--workflow", "plan-first", "--trust", "--hooks", "claude", "--http", "--no-wait"];

/** A desk with the hooks of Claude Code. */
async function hookedDesk(whenIdle: "allow" | "deny" = "allow"): Promise<Desk> {
  const here = desk();
  here.write(".sluice/workflows/plan-first.json", WORKFLOW);
  await here.sluice(["hook", "install", "claude", "--when-idle", whenIdle, "--yes"]);
  return here;
}

async function serving(here: Desk): Promise<Running> {
  const running = here.start(GATEWAY);
  await running.said("stdout", /^token {2}(\S+)$/m);
  return running;
}

async function end(running: Running, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  running.child.kill(signal);
  await running.ended;
}

/** What the host does with a shell command of a session: `gate` refuses it with the gateway's words, `hook` with its own. */
function decisionOf(here: Desk, session: string): "gate" | "hook" | "runs" {
  const settings: Json = JSON.parse(readFileSync(join(here.folder, ".claude", "settings.local.json"), "utf8"));
  const [group] = listAt(field(settings, "hooks"), "PreToolUse");
  const [hook] = listAt(group, "hooks");
  const payload = {
    hook_event_name: "PreToolUse",
    session_id: session,
    cwd: here.folder,
    tool_name: "Bash",
    tool_use_id: "toolu_1",
    tool_input: { command: "touch made" },
  };
  const { status, stdout } = spawnSync("/bin/sh", ["-c", String(field(hook, "command"))], {
    cwd: here.folder,
    input: JSON.stringify(payload),
    encoding: "utf8",
    env: { PATH: process.env.PATH },
  });
  if (status === 2) return "hook";
  return stdout.includes('"deny"') ? "gate" : "runs";
}

function listAt(value: Json | undefined, key: string): readonly Json[] {
  const found = field(value, key);
  return Array.isArray(found) ? found : [];
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
  // Whoever removes the hooks ends what the first gateway answers.
  await here.sluice(["hook", "remove", "claude", "--yes"]);
  await here.sluice(["hook", "install", "claude", "--when-idle", "allow", "--yes"]);
  await serving(here);
  await end(first);
  expect(decisionOf(here, "s2")).toBe("gate");
});

test("a gateway that is started while the last one ends takes its place", async () => {
  const here = await hookedDesk();
  const first = await serving(here);
  first.child.kill("SIGTERM");
  await serving(here);
  await first.ended;
  expect(decisionOf(here, "s2")).toBe("gate");
});
