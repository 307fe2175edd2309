// Every check in turn, one line each; the log of a check is printed when it fails. Ends with `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, secondsSince, tool } from "./setup.mjs";

const reports = join(root, ".reports");
/** A check that takes longer than this hangs. */
const checkTimeoutMs = 10 * 60_000;

const checks = [
  { name: "types", run: () => runTool("typescript/bin/tsc", ["-b"]) },
  { name: "format", run: () => runTool("@biomejs/biome/bin/biome", ["check", "--error-on-warnings"]) },
  { name: "lint", run: () => runTool("oxlint/bin/oxlint", ["--type-aware", "--deny-warnings"]) },
  ...["house", "types", "unit", "property", "conformance", "wire"].map((area) => testsOf(area)),
  // These start the built command.
  ...["command", "examples"].map((area) => ({ ...testsOf(area), needs: "types" })),
];

const failedChecks = new Set();
let passed = 0;
let failed = 0;

mkdirSync(reports, { recursive: true });
for (const check of checks) {
  if (check.exists === false) continue;
  if (failedChecks.has(check.needs)) {
    failed += 1;
    print("skip", check.name, `needs ${check.needs}`);
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
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

function print(outcome, name, detail) {
  process.stdout.write(`${outcome.padEnd(4)} ${name.padEnd(18)} ${detail}\n`);
}

/** A check that is not made of tests: nothing to count unless it fails. */
function runTool(path, args) {
  const result = runNode([tool(path), ...args]);
  return { ok: result.ok, passed: 0, failed: result.ok ? 0 : 1, notes: [], log: result.log };
}

function testsOf(area) {
  return {
    name: `test/${area}`,
    exists: existsSync(join(root, "test", area)),
    run: () => runTests(area),
  };
}

function runTests(area) {
  const reportFile = join(reports, `${area}.json`);
  rmSync(reportFile, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
  const result = runNode([tool("vitest/vitest.mjs"), "run", "--project", area, ...reporters]);
  const counts = readCounts(reportFile);
  // A file that does not load, or an error outside any test, fails the run without a failed test to count.
  const failures = result.ok ? counts.failed : Math.max(counts.failed, 1);
  const notes = [`${counts.passed} passed`];
  if (failures > 0) notes.push(`${failures} failed`);
  if (counts.skipped > 0) notes.push(`${counts.skipped} skipped`);
  return { ok: result.ok && failures === 0, passed: counts.passed, failed: failures, notes, log: result.log };
}

function readCounts(reportFile) {
  if (!existsSync(reportFile)) return { passed: 0, failed: 0, skipped: 0 };
  const report = JSON.parse(readFileSync(reportFile, "utf8"));
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests + report.numTodoTests,
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
