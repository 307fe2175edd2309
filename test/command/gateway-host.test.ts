import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { desk } from "../support/command.ts";

const WORKFLOW = join(import.meta.dirname, "../../examples/plan-first.yaml");

/** A desk with a stand-in for Claude Code on the PATH, which says its arguments and then does as `then` says. */
function withHost(then: string, version = "2.1.330") {
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
  const env = { PATH: `${bin}:${process.env.PATH ?? ""}` };
  const line = ["gateway", "run", "claude", "--workflow", WORKFLOW];
  return {
    start: (...args: readonly string[]) => here.start([...line, ...args], { env }),
    /** What is left of the starts in the state folder. */
    left: () => {
      const hosts = join(base, "state/sluice/hosts");
      return existsSync(hosts) ? readdirSync(hosts) : [];
    },
  };
}

test("a host gets its configuration in a private folder and the token in a variable, and nothing of it is left", async () => {
  const { start, left } = withHost("exit 7");
  const ended = await start("--", "--model", "opus").ended;
  expect(ended.code).toBe(7);
  expect(ended.stderr).toContain("Claude Code 2.1.330 in class hard (gateway tools only)");
  const [, length, args = ""] = /^token (\d+): (.*)$/m.exec(ended.stdout) ?? [];
  expect(Number(length)).toBeGreaterThan(31);
  expect(args).toContain("--tools= --model opus");
  expect(args).toContain("--settings=");
  expect(left()).toEqual([]);
});

test("a version that was not measured starts as advisory, and says so", async () => {
  const { start } = withHost("exit 0", "9.9.9");
  const { stderr } = await start().ended;
  expect(stderr).toContain("Claude Code 9.9.9 in class advisory");
  expect(stderr).toContain("9.9.9 was not measured, so nothing is promised: run sluice hook doctor claude");
});

test("an argument that lifts the class starts nothing", async () => {
  const { start, left } = withHost("exit 0");
  const ended = await start("--", "--settings", "mine.json").ended;
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(ended.stderr).toContain(
    "--settings is not passed to Claude Code: it replaces the settings that hold the hooks",
  );
  expect(left()).toEqual([]);
});

test("a signal ends the host, and nothing of it is left", async () => {
  const { start, left } = withHost("exec sleep 600");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    const running = start();
    await running.said("stdout", /token/);
    running.child.kill(signal);
    expect([signal, (await running.ended).code]).toEqual([signal, 143]);
    expect(left()).toEqual([]);
  }
});
