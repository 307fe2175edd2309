import { done, fail, fanOut, type Json, pipeline, type StageContext, stage, to } from "@sluice/core";
import { shape } from "@sluice/core/runtime";
import { changeSchema, filesNow, reportedFiles } from "./changes.ts";
import { commandRun, LINT_COMMANDS, oneOf, TEST_COMMANDS } from "./project-commands.ts";

const TEST_RULES = TEST_COMMANDS.map((command) => `Bash(${command})`);
const LINT_RULES = LINT_COMMANDS.map((command) => `Bash(${command})`);
const READERS = ["Read", "Grep", "Glob"];

const failure = shape.openObject({
  test: shape.text({ min: 1, description: "The test's name as the test runner prints it." }),
  error: shape.text({ description: "The assertion or error message, shortened to the relevant part." }),
});

const reproduce = stage({
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_reproduction",
  completionSchema: shape.openObject({
    command: shape.text({ min: 1, description: "The exact command that reproduces the failures." }),
    suite: shape.text({
      min: 1,
      description: "The command that runs the whole test suite, exactly as in the first list if it is there.",
    }),
    linter: shape.text({
      description:
        "The command of the project's own linter or type checker, exactly as in the second list if it is there. Empty if the project has none.",
    }),
    failures: shape.list(failure, { description: "Every failing test that you observed. Empty if all tests pass." }),
    cause: shape.text({ description: "The defect in the code, with file and line. Empty if all tests pass." }),
  }),
  turnCap: 20,
  prompt: `Tests fail in this workspace. Find out which tests fail and why. Another agent fixes them and sees only what you submit.

1. Find out how the tests are run, and the linter or type checker: package.json scripts, a Makefile, the project's documentation, the CI configuration.
2. Run them. Read the failing tests and the code under test.
3. Identify the cause: the defective line, what it does and what it should do. "The test fails" is not a cause.

${allowedCommands(TEST_COMMANDS)}

These are usual commands of linters. Name the project's, and do not run it: ${listed(LINT_COMMANDS)}.

Do not guess. Report only failures that appear in the output of a command you ran. If no test fails, submit an empty list.`,
});

const fix = stage({
  reads: { reproduce },
  inputSchema: shape.openObject({ problems: shape.list(shape.text()) }),
  allowedTools: [...READERS, "Edit", "Write", ...TEST_RULES],
  completionTool: "submit_fix",
  completionSchema: shape.openObject({
    summary: shape.text({ min: 1, description: "What was wrong and how you fixed it." }),
    changes: shape.list(changeSchema, { min: 1 }),
  }),
  turnCap: 40,
  prompt: `You fix the failing tests of this workspace by fixing the code under test.

The failures and their cause:
{{ctx.upstream.reproduce}}

Your input lists the problems to solve, including those that an earlier fix left unsolved.

- Read a file before you edit it. Fix the cause in the code under test with the smallest correct change.
- Change a test only if the test itself is wrong, and give the reason in the change. Never delete, skip or weaken a test to make it pass.
- Run the tests before you submit, and report only results that you observed. They are run again afterwards.

${allowedCommands(TEST_COMMANDS)}`,
});

const test = oneOf(TEST_COMMANDS, "{{ctx.upstream.reproduce.suite}}");
const lint = oneOf(LINT_COMMANDS, "{{ctx.upstream.reproduce.linter}}");

/** Instead of `test`, for a project with a command of its own, which needs approval. */
const runTests = stage({
  reads: { reproduce, fix },
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_test_run",
  completionSchema: shape.openObject({
    command: shape.text({ min: 1 }),
    passed: shape.flag({ description: "Whether the exit code of the whole test suite was 0." }),
    failures: shape.list(failure),
  }),
  turnCap: 12,
  prompt: `Run this workspace's tests after a fix and report the results. Change nothing, and report every failure.

The command that runs the whole suite:
{{ctx.upstream.reproduce.suite}}

Set "passed" to true only if the whole suite exits with code 0.

${allowedCommands(TEST_COMMANDS)}`,
});

/** Instead of `lint`, in the same case. */
const runLinter = stage({
  reads: { reproduce, fix },
  allowedTools: [...READERS, ...LINT_RULES],
  completionTool: "submit_lint_run",
  completionSchema: shape.openObject({
    command: shape.text({ description: "The command you ran. Empty if the project has no linter or type checker." }),
    passed: shape.flag({ description: "True if the command passed or the project has none." }),
    problems: shape.list(shape.text(), { description: "File, line and message of each error in the changed files." }),
  }),
  turnCap: 12,
  prompt: `Check the changed files of this workspace with the project's own linter or type checker and report the results. Change nothing.

The changes:
{{ctx.upstream.fix.changes}}

The command, as another agent found it:
{{ctx.upstream.reproduce.linter}}

Run it. If it does not work, find the right one in package.json, the Makefile or the CI configuration. Do not install one. Report errors only in the changed files.

${allowedCommands(LINT_COMMANDS)}`,
});

/** What the states after the fix read of the earlier ones. */
type Runs = Pick<
  StageContext<{
    readonly reproduce?: { readonly suite: string; readonly linter: string };
    readonly test?: Parameters<typeof commandRun>[1];
    readonly lint?: Parameters<typeof commandRun>[1];
    readonly runTests?: { readonly passed: boolean };
    readonly runLinter?: { readonly passed: boolean };
  }>,
  "upstream" | "fork"
>;

/** The run of the test suite after the fix; it has not passed if it could not be run to its end. */
function testRun({ upstream, fork }: Runs): { readonly passed: boolean } & { readonly [field: string]: Json } {
  const { reproduce, test, runTests } = upstream;
  if (runTests !== undefined) return runTests;
  if (test !== undefined) return commandRun(reproduce?.suite ?? "", test);
  return { passed: false, output: notRun(fork?.test ?? fork?.runTests) };
}

function linterRun({ upstream, fork }: Runs): { readonly [field: string]: Json } {
  const { reproduce, lint, runLinter } = upstream;
  if (reproduce?.linter === "") return { output: "the project has no linter" };
  if (runLinter !== undefined) return runLinter;
  if (lint !== undefined) return commandRun(reproduce?.linter ?? "", lint);
  return { output: notRun(fork?.lint ?? fork?.runLinter) };
}

function notRun(outcome: NonNullable<StageContext["fork"]>[string] | undefined): string {
  return outcome !== undefined && "message" in outcome ? outcome.message : "it was not run";
}

const verify = stage({
  reads: { reproduce, fix, test, lint, runTests, runLinter },
  allowedTools: [],
  setup: (ctx) => ({
    files: filesNow(ctx.workspace, reportedFiles(ctx.upstream.fix?.changes)),
    tests: testRun(ctx),
    linter: linterRun(ctx),
  }),
  completionTool: "submit_verdict",
  completionSchema: shape.openObject({
    verdict: shape.oneOf(["fixed", "not_fixed"]),
    summary: shape.text({ min: 1 }),
    problems: shape.list(shape.text(), { description: "The remaining problems, one per entry. Empty if fixed." }),
  }),
  turnCap: 8,
  prompt: `You decide whether failing tests were fixed or merely silenced. You have no tools. Judge by the information below.

The original failures and their cause:
{{ctx.upstream.reproduce}}

The author's report of the fix:
{{ctx.upstream.fix}}

The current content of the changed files:
{{ctx.setup.files}}

The test run after the fix:
{{ctx.setup.tests}}

The linter run after the fix, which may report problems that were there before:
{{ctx.setup.linter}}

The verdict is "fixed" if the original failures are gone, nothing else fails, the linter reports no problem in the changed code, and the cause was fixed in the code instead of adapting the tests. If a test was deleted, skipped or weakened without a good reason, the verdict is "not_fixed".`,
});

const MAX_FIXES = 3;

/** Characters of a failed test run that a further fix reads. */
const LONGEST_OUTPUT = 6_000;

/**
 * Reproduce, fix, test and lint in parallel, verify. The usual commands of projects are run without a model. A failed test run
 * overrides the verdict.
 */
export const fixTests = pipeline({
  id: "fixTests",
  input: shape.openObject({ task: shape.text({ min: 1 }) }),
  stages: { reproduce, fix, test, lint, runTests, runLinter, verify },
  initial: "reproduce",
  next: {
    reproduce: ({ output }) =>
      output.failures.length === 0
        ? done({ verdict: "nothing_failed" as const, summary: `all tests pass (${output.command})`, changes: [] })
        : to("fix", { problems: output.failures.map(({ test, error }) => `${test}: ${error}`) }),
    fix: (_, { upstream: { reproduce: found } }) => {
      const { suite = "", linter = "" } = found ?? {};
      const tests = TEST_COMMANDS.includes(suite) ? "test" : "runTests";
      const linting =
        linter === "" ? [] : [LINT_COMMANDS.includes(linter) ? ("lint" as const) : ("runLinter" as const)];
      return fanOut([tests, ...linting], { join: "verify", onFailure: "settle" });
    },
    verify: ({ output }, ctx) => {
      const run = testRun(ctx);
      const { runLinter: linting } = ctx.upstream;
      if (output.verdict === "fixed" && run.passed && linting?.passed !== false)
        return done({ verdict: output.verdict, summary: output.summary, changes: ctx.upstream.fix?.changes ?? [] });
      if (ctx.visit >= MAX_FIXES) return fail(`not fixed after ${MAX_FIXES} rounds: ${output.summary}`);
      const problems = [
        ...output.problems,
        ...(linting?.problems ?? []),
        ...(run.passed ? [] : [`The tests fail: ${JSON.stringify(run).slice(-LONGEST_OUTPUT)}`]),
      ];
      return to("fix", { problems: problems.length > 0 ? problems : [output.summary] });
    },
  },
});

/** Explains the rules to the model, because any other command may wait for approval or be denied. */
function allowedCommands(commands: readonly string[]): string {
  return `These commands run without approval if you write them exactly like this, from the workspace root: ${listed(commands)}. Any other command, option or environment variable needs the user's approval and may be denied.`;
}

function listed(commands: readonly string[]): string {
  return commands.map((command) => `\`${command}\``).join(", ");
}
