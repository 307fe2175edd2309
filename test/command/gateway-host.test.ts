import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { desk } from "../support/command.ts";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const WORKFLOW = join(import.meta.dirname, "../../examples/plan-first.yaml");

/** A desk with a stand-in for Claude Code on the PATH, which says its arguments and then does as `then` says. */
function withHost(then: string, { version = "2.1.330", flow = "" } = {}) {
  const here = desk();
  const base = dirname(here.folder);
  const bin = join(base, "bin");
  mkdirSync(bin);
  const script = `#!/bin/sh
if [ "$1" = --version ]; then echo '${version} (Claude Code)'; exit; fi
echo "token \${#SLUICE_GATEWAY_TOKEN}: $*"
${then}
`;
  writeFileSync(join(bin, "claude"), script);
  chmodSync(join(bin, "claude"), 0o755);
  const workflow = flow === "" ? WORKFLOW : join(base, "flow.yaml");
  if (flow !== "") writeFileSync(workflow, flow);
  const env = { PATH: `${bin}:${process.env.PATH ?? ""}` };
  return {
    start: (added: Readonly<Record<string, string>>, ...args: readonly string[]) =>
      here.start(["gateway", "run", "claude", "--workflow", workflow, ...args], { env: { ...env, ...added } }),
    /** A file beside the host's program. */
    put: (name: string, text: string) => writeFileSync(join(bin, name), text),
    base,
    plant: (name: string) => mkdirSync(join(base, "state/sluice/hosts", name), { recursive: true }),
    /** What is left of the starts in the state folder. */
    left: () => {
      const hosts = join(base, "state/sluice/hosts");
      return existsSync(hosts) ? readdirSync(hosts) : [];
    },
  };
}

test("what a killed gateway run left is removed by the next one, and what another process uses stays", async () => {
  const { start, left, plant } = withHost('echo "pid $$"; [ "$SLUICE_TEST_STAYS" = 1 ] && exec sleep 600');
  const killed = start({ SLUICE_TEST_STAYS: "1" });
  const [, pid = ""] = await killed.said("stdout", /^pid (\d+)$/m);
  killed.child.kill("SIGKILL");
  process.kill(Number(pid), "SIGKILL");
  await killed.ended;
  const [name = ""] = left();
  expect(name).toContain(`-${killed.child.pid}-`);
  // Of a process that runs, of another machine, and of something else.
  const others = [
    name.replace(`-${killed.child.pid}-`, `-${process.pid}-`),
    name.replace(/^run-\w+/, "run-0123456789ab"),
    "other",
  ];
  for (const other of others) plant(other);
  await start({}).ended;
  expect(left().toSorted()).toEqual(others.toSorted());
});

test("what a killed gateway run left stays for the next ones as long as its host lives, and its hook refuses", async () => {
  const { start, left, put, base } = withHost(
    `[ "$SLUICE_TEST_STAYS" = 1 ] && exec ${process.execPath} "$(dirname "$0")/host.cjs" "$@"; exit 0`,
  );
  // Like Claude Code, it has a title in place of its arguments.
  put("host.cjs", `process.title = "claude"; console.log("pid " + process.pid); setInterval(() => undefined, 1_000);`);
  const killed = start({ SLUICE_TEST_STAYS: "1" }, "--class", "guarded");
  const [, pid = ""] = await killed.said("stdout", /^pid (\d+)$/m);
  killed.child.kill("SIGKILL");
  await once(killed.child, "exit");
  onTestFinished(() => void spawnSync("kill", ["-9", pid]));
  const [name = ""] = left();
  await start({}).ended;
  expect(left()).toEqual([name]);
  const settings: { readonly hooks: Readonly<Record<string, readonly { hooks: readonly { command: string }[] }[]>> } =
    JSON.parse(readFileSync(join(base, "state/sluice/hosts", name, "claude-settings.json"), "utf8"));
  const command = settings.hooks.PreToolUse?.[0]?.hooks[0]?.command ?? "";
  expect(spawnSync("/bin/sh", ["-c", command], { input: "{}", encoding: "utf8" })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("The permission gate gave no answer (status 7)"),
  });
  process.kill(Number(pid), "SIGKILL");
  await killed.ended;
  await start({}).ended;
  expect(left()).toEqual([]);
});

test("a host gets its configuration in a private folder and the token in a variable, and nothing of it is left", async () => {
  const { start, left } = withHost("exit 7");
  const ended = await start({}, "--", "--model", "opus").ended;
  expect(ended.code).toBe(7);
  expect(ended.stderr).toContain("Claude Code 2.1.330 in class hard (gateway tools only)");
  const [, length, args = ""] = /^token (\d+): (.*)$/m.exec(ended.stdout) ?? [];
  expect(Number(length)).toBeGreaterThan(31);
  expect(args).toContain("--tools= --model opus");
  expect(args).toContain("--settings=");
  expect(left()).toEqual([]);
});

test("a host is started with the workspace as its PWD, because some work there and not in their current folder", async () => {
  const { start } = withHost(`tr '\\0' '\\n' < /proc/$$/environ | grep '^PWD='; pwd`);
  const { stdout } = await start({}).ended;
  const [, named, current] = /^PWD=(.*)\n(.*)$/m.exec(stdout) ?? [];
  expect(named).toBe(current);
  expect(named).not.toBe(process.env.PWD);
});

test("a version that was not measured starts as advisory, and says so", async () => {
  const { start } = withHost("exit 0", { version: "9.9.9" });
  const { stderr } = await start({}).ended;
  expect(stderr).toContain("Claude Code 9.9.9 in class advisory");
  expect(stderr).toContain("9.9.9 was not measured, so nothing is promised: run sluice hook doctor claude");
});

test("an argument that lifts the class starts nothing", async () => {
  const { start, left } = withHost("exit 0");
  const ended = await start({}, "--", "--settings", "mine.json").ended;
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(ended.stderr).toContain(
    "--settings is not passed to Claude Code: it replaces the settings that hold the hooks",
  );
  expect(left()).toEqual([]);
});

test("a signal ends the host, and nothing of it is left", async () => {
  const { start, left } = withHost("exec sleep 600");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    const running = start({});
    await running.said("stdout", /token/);
    running.child.kill(signal);
    expect([signal, (await running.ended).code]).toEqual([signal, 143]);
    expect(left()).toEqual([]);
  }
});

const FLOW = `
id: flow
initial: build
states:
  build: { allowed_tools: [Write, Bash], instructions: Build., on: { DONE: done } }
  done: { type: final }
`;
/** Calls the hook of its settings before a command, and says the answer. */
const HOOKED = `
const settings = JSON.parse(fs.readFileSync(process.argv.find((one) => one.startsWith("--settings=")).slice(11), "utf8"));
const [{ hooks: [{ command }] }] = settings.hooks.PreToolUse;
const call = { hook_event_name: "PreToolUse", tool_name: "Bash", tool_use_id: "toolu_1", tool_input: { command: "true", description: "x" } };
const input = JSON.stringify({ session_id: "s", transcript_path: "/dev/null", cwd: process.cwd(), permission_mode: "default", ...call });
console.log("answer " + child_process.spawnSync("/bin/sh", ["-c", command], { input, encoding: "utf8" }).stdout.trim());
`;

test.each([["--native"], ["--class", "guarded"]])(
  "with %s %s, a host runs no command outside of a sandbox that is required",
  async (...mode) => {
    const { start, put } = withHost(`exec ${process.execPath} "$(dirname "$0")/host.cjs" "$@"`, { flow: FLOW });
    put("host.cjs", `const [fs, child_process] = ["fs", "child_process"].map(require);${HOOKED}`);
    for (const [sandbox, decision] of [
      ["try", "allow"],
      ["require", "deny"],
    ] as const) {
      const { stdout } = await start({}, "--no-wait", "--sandbox", sandbox, ...mode).ended;
      expect([sandbox, stdout]).toEqual([sandbox, expect.stringContaining(`"permissionDecision":"${decision}"`)]);
    }
  },
);

test("an agent that leaves while a request is open leaves a suspended run, and no fault", async () => {
  const here = desk();
  here.write("a.txt", "one\n");
  const messages = [
    {
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } },
    },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: { name: "Write", arguments: { file_path: "b.txt", content: "two\n" } } },
  ];
  const home = join(dirname(here.folder), "home");
  const child = spawn(process.execPath, [BIN, "gateway", "--workflow", WORKFLOW], {
    cwd: here.folder,
    env: { PATH: process.env.PATH, HOME: home, NODE_NO_WARNINGS: "1" },
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = once(child, "close");
  for (const message of messages) child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  for (;;) if ((await here.sluice(["runs"])).stdout.includes("waiting for an answer")) break;
  child.stdin.end();
  expect(await ended).toEqual([3, null]);
  expect(stderr).toMatch(/^sluice: run r\w+ is suspended\n {2}sluice gateway --resume r\w+\n$/);
});
