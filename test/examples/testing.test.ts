import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Runs the example's tests by the command it documents, with nothing of this machine's settings. */
function tests(folder: string, env: Readonly<Record<string, string>> = {}) {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", "--root", folder], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: "1", ...env },
  });
  return { status, said: stdout + stderr };
}

/** The example in a folder where its packages are found. */
function copy(): string {
  const parent = join(root, ".reports");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "testing-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(root, "examples/testing"), folder, { recursive: true });
  return folder;
}

test("the example's tests pass with the cassette that is committed", () => {
  // In a copy, since vitest keeps what it measured beside the tests.
  const { status, said } = tests(copy());
  expect(status, said).toBe(0);
});

test("a changed prompt makes its cassette stale, and SLUICE_RECORD=1 records it again", () => {
  const folder = copy();
  const pipeline = join(folder, "release-notes.ts");
  writeFileSync(pipeline, readFileSync(pipeline, "utf8").replace("Leave out", "Omit"));
  const stale = tests(folder);
  expect(stale.status).toBe(1);
  expect(stale.said).toContain("message 1 (system) differs in line 1");
  expect(stale.said).toMatch(/recorded: .*Leave out/);
  expect(tests(folder, { SLUICE_RECORD: "1" }).status).toBe(0);
  expect(tests(folder).status).toBe(0);
});
