import { done, fail, fanOut, pipeline, stage, to } from "@sluice/core";
import { z } from "zod";
import { changeSchema, filesNow, reportedFiles } from "./changes.ts";

/** Exact commands: a further option could name a program to run or a file to write. Anything else needs approval. */
const TEST_COMMANDS = [
  "npm test",
  "npm run test",
  "pnpm test",
  "pnpm run test",
  "yarn test",
  "yarn run test",
  "node --test",
  "npx vitest run",
  "npx jest",
  "pytest",
  "pytest -q",
  "python -m pytest",
  "python -m pytest -q",
  "python3 -m pytest",
  "python3 -m pytest -q",
  "python -m unittest",
  "python3 -m unittest",
  "go test ./...",
  "cargo test",
  "make test",
];
const LINT_COMMANDS = [
  "npm run lint",
  "pnpm lint",
  "pnpm run lint",
  "yarn lint",
  "yarn run lint",
  "npx eslint .",
  "npx biome check",
  "npx biome check .",
  "npx tsc --noEmit",
  "ruff check",
  "ruff check .",
  "go vet ./...",
  "cargo clippy",
  "make lint",
];
const TEST_RULES = TEST_COMMANDS.map((command) => `Bash(${command})`);
const LINT_RULES = LINT_COMMANDS.map((command) => `Bash(${command})`);
const READERS = ["Read", "Grep", "Glob"];

const failure = z.object({
  test: z.string().min(1).describe("The test's name as the test runner prints it."),
  error: z.string().describe("The assertion or error message, shortened to the relevant part."),
});

const reproduce = stage({
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_reproduction",
  completionSchema: z.object({
    command: z.string().min(1).describe("The exact command that reproduces the failures."),
    failures: z.array(failure).describe("Every failing test that you observed. Empty if all tests pass."),
    cause: z.string().describe("The defect in the code, with file and line. Empty if all tests pass."),
  }),
  turnCap: 20,
  prompt: `Tests fail in this workspace. Find out which tests fail and why. Another agent fixes them and sees only what you submit.

1. Find out how the tests are run: package.json scripts, a Makefile, the project's documentation, the CI configuration.
2. Run them. Read the failing tests and the code under test.
3. Identify the cause: the defective line, what it does and what it should do. "The test fails" is not a cause.

${allowedCommands(TEST_COMMANDS)}

Do not guess. Report only failures that appear in the output of a command you ran. If no test fails, submit an empty list.`,
});

const fix = stage({
  reads: { reproduce },
  inputSchema: z.object({ problems: z.array(z.string()) }),
  allowedTools: [...READERS, "Edit", "Write", ...TEST_RULES],
  completionTool: "submit_fix",
  completionSchema: z.object({
    summary: z.string().min(1).describe("What was wrong and how you fixed it."),
    changes: z.array(changeSchema).min(1),
  }),
  turnCap: 40,
  prompt: `You fix the failing tests of this workspace by fixing the code under test.

The failures and their cause:
{{ctx.upstream.reproduce}}

Your input lists the problems to solve, including those that an earlier fix left unsolved.

- Read a file before you edit it. Fix the cause in the code under test with the smallest correct change.
- Change a test only if the test itself is wrong, and give the reason in the change. Never delete, skip or weaken a test to make it pass.
- Run the tests before you submit, and report only results that you observed. A later stage runs them again.

${allowedCommands(TEST_COMMANDS)}`,
});

const test = stage({
  reads: { reproduce, fix },
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_test_run",
  completionSchema: z.object({
    command: z.string().min(1),
    passed: z.boolean().describe("Whether the exit code of the whole test suite was 0."),
    failures: z.array(failure),
  }),
  turnCap: 12,
  prompt: `Run this workspace's tests after a fix and report the results. Change nothing, and report every failure.

The command that reproduced the failures:
{{ctx.upstream.reproduce.command}}

Run that command first. If it covers only part of the test suite, run the whole suite too. Set "passed" to true only if the whole suite exits with code 0.

${allowedCommands(TEST_COMMANDS)}`,
});

const lint = stage({
  reads: { fix },
  allowedTools: [...READERS, ...LINT_RULES],
  completionTool: "submit_lint_run",
  completionSchema: z.object({
    command: z.string().describe("The command you ran. Empty if the project has no linter or type checker."),
    passed: z.boolean().describe("True if the command passed or the project has none."),
    problems: z.array(z.string()).describe("File, line and message of each error in the changed files."),
  }),
  turnCap: 12,
  prompt: `Check the changed files of this workspace with the project's own linter or type checker and report the results. Change nothing.

The changes:
{{ctx.upstream.fix.changes}}

Find the command in package.json, the Makefile or the CI configuration and run it. If the project has none, submit an empty command and passed: true. Do not install one. Report errors only in the changed files.

${allowedCommands(LINT_COMMANDS)}`,
});

const verify = stage({
  reads: { reproduce, fix, test, lint },
  allowedTools: [],
  setup: (ctx) => filesNow(ctx.workspace, reportedFiles(ctx.upstream.fix?.changes)),
  completionTool: "submit_verdict",
  completionSchema: z.object({
    verdict: z.enum(["fixed", "not_fixed"]),
    summary: z.string().min(1),
    problems: z.array(z.string()).describe("The remaining problems, one per entry. Empty if fixed."),
  }),
  turnCap: 8,
  prompt: `You decide whether failing tests were fixed or merely silenced. You have no tools. Judge by the information below.

The original failures and their cause:
{{ctx.upstream.reproduce}}

The author's report of the fix:
{{ctx.upstream.fix}}

The current content of the changed files:
{{ctx.setup}}

The test run after the fix:
{{ctx.upstream.test}}

The linter run after the fix:
{{ctx.upstream.lint}}

The verdict is "fixed" if the original failures are gone, nothing else fails, and the cause was fixed in the code instead of adapting the tests. If a test was deleted, skipped or weakened without a good reason, the verdict is "not_fixed".`,
});

const MAX_FIXES = 3;

/** Reproduce, fix, test and lint in parallel, verify. A failed test run overrides the verdict. */
export const fixTests = pipeline({
  id: "fixTests",
  input: z.object({ task: z.string().min(1) }),
  stages: { reproduce, fix, test, lint, verify },
  initial: "reproduce",
  next: {
    reproduce: ({ output }) =>
      output.failures.length === 0
        ? done({ verdict: "nothing_failed" as const, summary: `all tests pass (${output.command})`, changes: [] })
        : to("fix", { problems: output.failures.map(({ test, error }) => `${test}: ${error}`) }),
    fix: () => fanOut(["test", "lint"], { join: "verify" }),
    verify: ({ output }, ctx) => {
      const { test: testRun, lint: lintRun } = ctx.upstream;
      const problems = [
        ...output.problems,
        ...(testRun?.failures ?? []).map(({ test, error }) => `${test}: ${error}`),
        ...(lintRun?.problems ?? []),
      ];
      const clean = testRun?.passed === true && lintRun?.passed === true;
      if (output.verdict === "fixed" && clean)
        return done({ verdict: output.verdict, summary: output.summary, changes: ctx.upstream.fix?.changes ?? [] });
      if (ctx.visit >= MAX_FIXES) return fail(`not fixed after ${MAX_FIXES} rounds: ${output.summary}`);
      return to("fix", { problems: problems.length > 0 ? problems : [output.summary] });
    },
  },
});

/** Explains the rules to the model, because any other command may wait for approval or be denied. */
function allowedCommands(commands: readonly string[]): string {
  return `These commands run without approval if you write them exactly like this, from the workspace root: ${commands.map((command) => `\`${command}\``).join(", ")}. Any other command, option or environment variable needs the user's approval and may be denied.`;
}
