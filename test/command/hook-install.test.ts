import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { field, type Json, parseJson } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { hookFolder } from "../../packages/gateway/src/hosts/install/published-hooks.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

const WORKFLOW = JSON.stringify({
  id: "plan-first",
  initial: "plan",
  states: {
    plan: { instructions: "Plan.", allowed_tools: ["Read"], on: { READY: "done", STUCK: "failed" } },
    done: { type: "final" },
    failed: { type: "final", outcome: "failed" },
  },
});

const PROJECT_HOSTS = ["claude", "gemini", "qwen", "copilot", "opencode"] as const;

/** Every file below a folder, with its content. */
function filesIn(folder: string): Readonly<Record<string, string>> {
  if (!existsSync(folder)) return {};
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    paths.map((path, index) => [path, entries[index]?.isFile() ? readFileSync(path, "utf8") : ""]),
  );
}

function stateOf(here: DeskHere): string {
  return join(dirname(here.folder), "state", "sluice");
}

function jsonIn(path: string): Json {
  const parsed = parseJson(readFileSync(path, "utf8"));
  if (!parsed.ok) throw new Error(`${path}: ${parsed.fault}`);
  return parsed.value;
}

describe.each(PROJECT_HOSTS)("the hooks of %s", (host) => {
  test("are added with --yes, shown as a diff, and removed without a trace", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/plan-first.json", WORKFLOW);
    const before = filesIn(dirname(here.folder));
    const installed = await here.sluice(["hook", "install", host, "--workflow", "plan-first", "--trust", "--yes"]);
    expect(installed).toMatchObject({ code: 0 });
    expect(installed.stdout).toMatch(/^\+.*sluice-hook/m);
    expect(filesIn(here.folder)).not.toEqual(before);
    const removed = await here.sluice(["hook", "remove", host, "--yes"]);
    expect(removed).toMatchObject({ code: 0 });
    // What you trusted stays trusted, and the gateway's server keeps its name.
    for (const kept of ["trust.json", "server-names.key"]) rmSync(join(stateOf(here), kept));
    const after = filesIn(dirname(here.folder));
    delete (after as Record<string, string>)[stateOf(here)];
    delete (after as Record<string, string>)[dirname(stateOf(here))];
    expect(after).toEqual(before);
  });

  test("are added once", async () => {
    const here = deskHere();
    await here.sluice(["hook", "install", host, "--yes"]);
    const once = filesIn(here.folder);
    const again = await here.sluice(["hook", "install", host, "--yes"]);
    expect(again.stdout).toContain("has these hooks already");
    expect(filesIn(here.folder)).toEqual(once);
  });
});

test("without a terminal and without --yes, the changes are shown and not made", async () => {
  const here = deskHere();
  const ended = await here.sluice(["hook", "install", "claude"]);
  expect(ended).toMatchObject({ code: 2 });
  expect(ended.stdout).toContain("sluice-hook");
  expect(ended.stderr).toContain("use --yes");
  expect(filesIn(here.folder)).toEqual({});
});

test("a workflow that is not trusted or not there is not installed", async () => {
  const here = deskHere();
  for (const workflow of ["plan-first", "missing"]) {
    here.write(".sluice/workflows/plan-first.json", WORKFLOW);
    const ended = await here.sluice(["hook", "install", "claude", "--workflow", workflow, "--yes"]);
    expect(ended.code).not.toBe(0);
  }
  expect(existsSync(join(here.folder, ".claude"))).toBe(false);
});

describe("settings that exist", () => {
  const OWN =
    '{\n    // mine\n    "theme": "dark",\n    "hooks": { "BeforeTool": [{ "matcher": "write_file", "hooks": [] }] }\n}\n';

  test("keep their comments and other hooks, and come back byte for byte", async () => {
    const here = deskHere();
    const path = here.write(".gemini/settings.json", OWN);
    await here.sluice(["hook", "install", "gemini", "--yes"]);
    expect(readFileSync(path, "utf8")).toContain('// mine\n    "theme": "dark",');
    expect(readFileSync(path, "utf8")).toContain("sluice-hook");
    await here.sluice(["hook", "remove", "gemini", "--yes"]);
    expect(readFileSync(path, "utf8")).toBe(OWN);
  });

  test("of Claude Code with comments are refused, because it would not load them and be unguarded", async () => {
    const here = deskHere();
    const path = here.write(".claude/settings.local.json", OWN);
    const ended = await here.sluice(["hook", "install", "claude", "--yes"]);
    expect(ended).toMatchObject({ code: 2 });
    expect(ended.stderr).toMatch(/settings\.local\.json: it is not plain JSON, and this host ignores such a file/);
    expect(readFileSync(path, "utf8")).toBe(OWN);
  });

  test("that were changed since lose our entries only", async () => {
    const here = deskHere();
    const path = here.write(".gemini/settings.json", '{\n  "a": 1\n}\n');
    here.write(".sluice/workflows/plan-first.json", WORKFLOW);
    await here.sluice(["hook", "install", "gemini", "--workflow", "plan-first", "--trust", "--yes"]);
    writeFileSync(path, readFileSync(path, "utf8").replace('"a": 1', '"a": 2'));
    await here.sluice(["hook", "remove", "gemini", "--yes"]);
    expect(readFileSync(path, "utf8")).toBe('{\n  "a": 2\n}\n');
  });

  test("that cannot be read stay as they are, with the file and the line", async () => {
    const here = deskHere();
    const path = here.write(".qwen/settings.json", '{\n  "a" 1\n}\n');
    const ended = await here.sluice(["hook", "install", "qwen", "--yes"]);
    expect(ended).toMatchObject({ code: 2 });
    expect(ended.stderr).toMatch(/settings\.json: line 2: a colon was expected/);
    expect(readFileSync(path, "utf8")).toBe('{\n  "a" 1\n}\n');
  });
});

describe("an installed hook, run as a host runs it", () => {
  async function commandOf(here: DeskHere, event: string, ...more: readonly string[]): Promise<string> {
    await here.sluice(["hook", "install", "claude", "--yes", ...more]);
    const user = more.includes("user");
    const path = user
      ? join(dirname(here.folder), "home", ".claude", "settings.json")
      : join(here.folder, ".claude", "settings.local.json");
    const [group] = ((value) => (Array.isArray(value) ? value : []))(field(field(jsonIn(path), "hooks"), event));
    const [hook] = ((value) => (Array.isArray(value) ? value : []))(field(group, "hooks"));
    const command = field(hook, "command");
    if (typeof command !== "string") throw new Error("no command");
    return command;
  }
  function run(here: DeskHere, command: string, cwd = here.folder) {
    return spawnSync("sh", ["-c", command], { cwd, input: "{}", encoding: "utf8", env: { PATH: process.env.PATH } });
  }
  function publish(here: DeskHere, script: string): void {
    const folder = hookFolder(stateOf(here), here.folder);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "claude.sh"), script);
  }

  test("refuses with a reason while no gateway was started", async () => {
    const here = deskHere();
    const result = run(here, await commandOf(here, "PreToolUse"));
    expect(result).toMatchObject({ status: 2, stdout: "" });
    expect(result.stderr).toContain("Start one: sluice gateway");
  });

  test("passes then if that was chosen", async () => {
    const here = deskHere();
    expect(run(here, await commandOf(here, "PreToolUse", "--when-idle", "allow"))).toMatchObject({
      status: 0,
      stdout: "",
    });
  });

  test("says nothing about what is only reported", async () => {
    const here = deskHere();
    expect(run(here, await commandOf(here, "PostToolUse"))).toMatchObject({ status: 0, stdout: "" });
  });

  test("passes the gateway's answer on, with the event", async () => {
    const here = deskHere();
    publish(here, 'echo "answer to $1"');
    expect(run(here, await commandOf(here, "PreToolUse"))).toMatchObject({
      status: 0,
      stdout: "answer to PreToolUse\n",
    });
  });

  test.each(["exit 1", "exit 3", "kill -9 $$", "exec /no/such/program", "syntax ("])(
    "refuses if what the gateway published ends with: %s",
    async (script) => {
      const here = deskHere();
      publish(here, `${script}\n`);
      for (const more of [[], ["--when-idle", "allow"]]) {
        const result = run(here, await commandOf(here, "PreToolUse", ...more));
        expect(result.status).toBe(2);
        expect(result.stderr).toContain("gave no answer");
      }
    },
  );

  test("of a user finds the gateway of the folder above", async () => {
    const here = deskHere();
    publish(here, "echo found");
    mkdirSync(join(here.folder, "src", "deep"), { recursive: true });
    const command = await commandOf(here, "PreToolUse", "--scope", "user");
    expect(run(here, command, join(here.folder, "src", "deep"))).toMatchObject({ status: 0, stdout: "found\n" });
    expect(run(here, command, dirname(here.folder))).toMatchObject({ status: 2 });
  });

  test("ignores a file that came with the repository", async () => {
    const here = deskHere();
    here.write(".sluice/store/claude.sh", "echo hostile");
    expect(run(here, await commandOf(here, "PreToolUse"))).toMatchObject({ status: 2, stdout: "" });
  });
});

test("a run cannot install, remove or prove hooks", async () => {
  const here = deskHere();
  for (const command of [
    ["install", "claude", "--yes"],
    ["remove", "claude", "--yes"],
    ["doctor", "claude"],
  ]) {
    const ended = await here.sluice(["hook", ...command], { env: { SLUICE_RUN: "r1" } });
    expect(ended).toMatchObject({ code: 2 });
  }
  expect(filesIn(here.folder)).toEqual({});
});
