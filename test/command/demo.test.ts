import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { at, desk, lines, printed, textAt } from "../support/command.ts";

function removed(folder: string): string {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("the demo says it is offline and scripted, tells each boundary, the diff, the journal and what to try next", async () => {
  const { code, stdout, stderr } = await desk().sluice(["demo"]);
  const folder = removed(/workspace +(\S+)/.exec(stdout)?.[1] ?? "");
  expect(code).toBe(0);
  expect(stderr).toBe("sluice: 1 call was denied: Edit (no_interactor)\n");
  const inOrder = [
    "This demo is offline",
    "The model is a script",
    "plan#1 .*entered",
    "plan#1 .*requests +Edit",
    "plan#1 .*denied +Edit.*no_interactor",
    "plan#1 .*ran +Grep",
    "plan#1 .*ran +Read",
    "plan#1 .*completed",
    "next +execute",
    "execute#1 .*ran +Edit",
    "next +review",
    "review#1 .*entered +with no tools",
    "^completed r",
    '"verdict": "approve"',
    "^--- a/src/duration.js$",
    "^\\+\\+\\+ b/src/duration.js$",
    "^@@ ",
    "The journal of the run is in ",
    "sluice audit r[a-z0-9]+ --verify --store ",
  ];
  expect(stdout).toMatch(new RegExp(inOrder.join("[\\s\\S]*"), "m"));
  expect(existsSync(join(folder, ".sluice", "store"))).toBe(true);
});

test("what it says to try next works: the audit verifies", async () => {
  const here = desk();
  const { stdout } = await here.sluice(["demo"]);
  removed(/workspace +(\S+)/.exec(stdout)?.[1] ?? "");
  const [, line = ""] = /^ +sluice (audit .*)$/m.exec(stdout) ?? [];
  const audit = await here.sluice(line.split(" "));
  expect(audit.code).toBe(0);
  expect(audit.stdout).toContain("verified");
});

test("for programs it is the result alone, with the folder; the sample's tests pass on what was changed", async () => {
  const [json, stream] = await Promise.all([
    desk().sluice(["demo", "--output-format", "json"]),
    desk().sluice(["demo", "--keep", "--output-format", "stream-json"]),
  ]);
  const report = printed(json);
  const folder = removed(textAt(report, "demo", "folder"));
  const last = lines(stream).at(-1);
  const kept = removed(textAt(last, "demo", "folder"));
  expect([json.code, stream.code]).toEqual([0, 0]);
  expect(report).toMatchObject({
    status: "completed",
    output: { verdict: "approve" },
    denied: [{ executionId: "plan#1", tool: "Edit" }],
  });
  expect(at(last, "status")).toBe("completed");
  expect(kept).toContain("kept");

  const source = readFileSync(join(folder, "src", "duration.js"), "utf8");
  expect(source).toContain("matchAll");
  const tests = execFileSync(process.execPath, ["--test"], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  });
  expect(tests).toMatch(/several units are added up/);
  expect(tests).toMatch(/fail 0/);
});
