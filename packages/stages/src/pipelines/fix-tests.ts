import { done, fail, fanOut, pipeline, stage, to } from "@sluice/core";
import { z } from "zod";
import { changeSchema, filesNow, reportedFiles } from "./changes.ts";

/**
 * Commands that run a project's tests, word by word: an option more could name a program to run or a file to write, also in a
 * stage that may not write. Whatever else a stage wants to run needs a grant.
 */
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
const TEST_RULES = TEST_COMMANDS.map(ruleOf);
const LINT_RULES = LINT_COMMANDS.map(ruleOf);
const READERS = ["Read", "Grep", "Glob"];

const failure = z.object({
  test: z.string().min(1).describe("The test's name, as the runner prints it."),
  error: z.string().describe("The assertion or error, shortened to what matters."),
});

const reproduce = stage({
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_reproduction",
  completionSchema: z.object({
    command: z.string().min(1).describe("The exact command that shows the failures."),
    failures: z.array(failure).describe("Every failing test you saw. Empty when all of them pass."),
    cause: z.string().describe("What is wrong in the code, with file and line; empty when nothing fails."),
  }),
  turnCap: 20,
  prompt: `Tests fail in this workspace. You find out which, and why. Somebody else mends them and sees nothing of your work but what you submit.

1. Find how the tests are run: package.json scripts, a Makefile, the project's docs, the continuous integration file.
2. Run them, and Read the failing tests and the code they test.
3. Name the cause: the line that is wrong and what it does instead of what it should. "The test fails" is not a cause.

${freely(TEST_COMMANDS)}

Do not guess: report only failures that you saw in the output of a command you ran. If nothing fails, say so with an empty list.`,
});

const fix = stage({
  reads: { reproduce },
  inputSchema: z.object({ problems: z.array(z.string()) }),
  allowedTools: [...READERS, "Edit", "Write", ...TEST_RULES],
  completionTool: "submit_fix",
  completionSchema: z.object({
    summary: z.string().min(1).describe("What was wrong and how it is mended."),
    changes: z.array(changeSchema).min(1),
  }),
  turnCap: 40,
  prompt: `You mend the failing tests of this workspace by mending the code.

What was found:
{{ctx.upstream.reproduce}}

Your input lists the problems to solve, also those an earlier fix left open.

- Read before you edit. Mend the cause in the code that is tested; the smallest change that is right.
- A test is only changed when it is itself wrong: say so in the change, with the reason. Never delete, skip or weaken a test to make it pass.
- Run the tests before you submit. Others run them again after you, so do not report what you have not seen.

${freely(TEST_COMMANDS)}`,
});

const test = stage({
  reads: { reproduce, fix },
  allowedTools: [...READERS, ...TEST_RULES],
  completionTool: "submit_test_run",
  completionSchema: z.object({
    command: z.string().min(1),
    passed: z.boolean().describe("Whether the whole run passed, by its exit code."),
    failures: z.array(failure),
  }),
  turnCap: 12,
  prompt: `Run this workspace's tests after a fix, and report what you see. You change nothing and you explain nothing away.

The command that showed the failures before:
{{ctx.upstream.reproduce.command}}

Run that command first, then the whole test suite if that was only a part of it. "passed" is true only when the exit code of the whole suite was 0.

${freely(TEST_COMMANDS)}`,
});

const lint = stage({
  reads: { fix },
  allowedTools: [...READERS, ...LINT_RULES],
  completionTool: "submit_lint_run",
  completionSchema: z.object({
    command: z.string().describe("What you ran; empty when the project has no linter or type checker."),
    passed: z.boolean().describe("True when it passed, and when there is none."),
    problems: z.array(z.string()).describe("File, line and message of each error in the changed files."),
  }),
  turnCap: 12,
  prompt: `Check the changed files of this workspace with the project's own linter or type checker, and report what you see. You change nothing.

What was changed:
{{ctx.upstream.fix.changes}}

Find the command in package.json, the Makefile or the continuous integration file and run it. If the project has none, submit an empty command and passed: true; do not bring one in. Report errors only in files that were changed.

${freely(LINT_COMMANDS)}`,
});

const verify = stage({
  reads: { reproduce, fix, test, lint },
  allowedTools: [],
  setup: (ctx) => filesNow(ctx.workspace, reportedFiles(ctx.upstream.fix?.changes)),
  completionTool: "submit_verdict",
  completionSchema: z.object({
    verdict: z.enum(["fixed", "not_fixed"]),
    summary: z.string().min(1),
    problems: z.array(z.string()).describe("What is left to do, one problem each; empty when fixed."),
  }),
  turnCap: 8,
  prompt: `You decide whether failing tests were mended, or only silenced. You have no tools: judge by what is below.

What failed before, and why:
{{ctx.upstream.reproduce}}

What was changed, as its author reports it:
{{ctx.upstream.fix}}

The changed files as they are on disk now:
{{ctx.setup}}

The test run after it:
{{ctx.upstream.test}}

The linter after it:
{{ctx.upstream.lint}}

"fixed" means: the failures named before are gone, nothing new fails, the cause was mended and not the test bent around it. A deleted, skipped or weakened test without a good reason is not_fixed.`,
});

const MAX_FIXES = 3;

/** Reproduce, fix, then test and lint side by side, then a verdict. The test run counts, whatever the verdict says. */
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
      const { test: tests, lint: linted } = ctx.upstream;
      const problems = [
        ...output.problems,
        ...(tests?.failures ?? []).map(({ test, error }) => `${test}: ${error}`),
        ...(linted?.problems ?? []),
      ];
      const clean = tests?.passed === true && linted?.passed === true;
      if (output.verdict === "fixed" && clean)
        return done({ verdict: output.verdict, summary: output.summary, changes: ctx.upstream.fix?.changes ?? [] });
      if (ctx.visit >= MAX_FIXES) return fail(`not fixed after ${MAX_FIXES} rounds: ${output.summary}`);
      return to("fix", { problems: problems.length > 0 ? problems : [output.summary] });
    },
  },
});

function ruleOf(command: string): string {
  return `Bash(${command})`;
}

/** What a model has to know of the rules: a command that needs a grant may wait for somebody, or be refused at once. */
function freely(commands: readonly string[]): string {
  return `These commands run at once, exactly as they are written here, from the workspace's folder: ${commands.map((command) => `\`${command}\``).join(", ")}. With any other word, option or variable a command needs the approval of a person, who may not be there.`;
}
