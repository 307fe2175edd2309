// Runs all checks, with one line each and the log of each failed one. Ends with `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative, sep } from "node:path";
import { setup } from "../test/support/own-home.ts";
import { appeared, pathsNow } from "./left-behind.mjs";
import { root, secondsSince, tool } from "./setup.mjs";

const reports = join(root, ".reports");
/** The time limit of a check: far above what a busy machine needs, since each test has a limit of its own. */
const checkTimeoutMs = 60 * 60_000;

const checks = [
  { name: "types", run: () => runTool("typescript/bin/tsc", ["-b"]) },
  { name: "bundles", run: () => runNodeTool([join(root, "scripts/bundle.mjs")]) },
  { name: "format", run: () => runTool("@biomejs/biome/bin/biome", ["check", "--error-on-warnings"]) },
  { name: "lint", run: () => runTool("oxlint/bin/oxlint", ["--type-aware", "--deny-warnings", "--format=unix"]) },
  { name: "unused", run: () => runTool("knip/bin/knip.js", ["--no-progress"]) },
  { name: "tests", needs: ["types", "bundles"], run: runTests },
  { name: "left behind", run: lookAround },
];

const failedChecks = new Set();
let passed = 0;
let failed = 0;

mkdirSync(reports, { recursive: true });
const home = homedir();
const before = pathsNow(root, home);
const removeOwnHome = setup();
for (const check of checks) {
  const missing = (check.needs ?? []).filter((name) => failedChecks.has(name));
  if (missing.length > 0) {
    failed += 1;
    print("skip", check.name, `needs ${missing.join(" and ")}`);
    continue;
  }
  const started = Date.now();
  const result = check.run();
  passed += result.passed;
  failed += result.failed;
  if (!result.ok) {
    failedChecks.add(check.name);
    process.stdout.write(`${result.log.trimEnd()}\n`);
  }
  print(result.ok ? "ok" : "FAIL", check.name, [...result.notes, secondsSince(started)].join(", "));
}
removeOwnHome();
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

function print(outcome, name, detail) {
  process.stdout.write(`${outcome.padEnd(4)} ${name.padEnd(18)} ${detail}\n`);
}

/** A check without tests counts only if it fails. */
function runTool(path, args) {
  return runNodeTool([tool(path), ...args]);
}

function runNodeTool(args) {
  const result = runNode(args);
  return { ok: result.ok, passed: 0, failed: result.ok ? 0 : 1, notes: [], log: result.log };
}

/** Checks that no new files remain in the developer's home or in this folder. */
function lookAround() {
  const names = appeared(before, pathsNow(root, home));
  const log = `The checks left these files; tests may write only to temporary folders:\n  ${names.join("\n  ")}`;
  return { ok: names.length === 0, passed: 0, failed: names.length === 0 ? 0 : 1, notes: [], log };
}

function runTests() {
  const reportFile = join(reports, "tests.json");
  rmSync(reportFile, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
  const result = runNode([tool("vitest/vitest.mjs"), "run", ...reporters]);
  const counts = readCounts(reportFile);
  // An error outside of all tests and files counts as one failure.
  const failures = result.ok ? counts.failed : Math.max(counts.failed, 1);
  const each = [...counts.byFolder].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => `${name} ${count}`);
  const notes = [`${counts.passed} passed (${each.join(", ")})`];
  if (failures > 0) notes.push(`${failures} failed`);
  if (counts.skipped > 0) notes.push(`${counts.skipped} skipped`);
  return { ok: result.ok && failures === 0, passed: counts.passed, failed: failures, notes, log: result.log };
}

function readCounts(reportFile) {
  const byFolder = new Map();
  if (!existsSync(reportFile)) return { passed: 0, failed: 0, skipped: 0, byFolder };
  const report = JSON.parse(readFileSync(reportFile, "utf8"));
  // A file that does not load has no failed test, but counts as one failure.
  const unloadable = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  for (const file of report.testResults) {
    const [folder = ""] = relative(join(root, "test"), file.name).split(sep, 1);
    const passed = file.assertionResults.filter((test) => test.status === "passed").length;
    byFolder.set(folder, (byFolder.get(folder) ?? 0) + passed);
  }
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloadable.length,
    skipped: report.numPendingTests + report.numTodoTests,
    byFolder,
  };
}

function runNode(args) {
  const result = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: checkTimeoutMs,
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined },
  });
  const log = [result.stdout, result.stderr, result.error?.message].filter(Boolean).join("\n");
  return { ok: result.status === 0, log };
}
