import { done, fail, pipeline, stage, to } from "@sluice/core";
import { shape } from "@sluice/core/runtime";
import { changeSchema, filesNow, reportedFiles } from "./changes.ts";
import { commandRun, LINT_COMMANDS, oneOf, TEST_COMMANDS } from "./project-commands.ts";

/** The commands that may check a change. */
const CHECKS: readonly string[] = [...TEST_COMMANDS, ...LINT_COMMANDS];

const plan = stage({
  allowedTools: ["Read", "Grep", "Glob"],
  completionTool: "submit_plan",
  completionSchema: shape.openObject({
    summary: shape.text({ min: 1, description: "What the change achieves, in two or three sentences." }),
    steps: shape.list(shape.text({ min: 1 }), {
      min: 1,
      description:
        "In order, one change per step: the file and what to change in it, specific enough to implement without questions.",
    }),
    files: shape.list(shape.text(), { description: "Every file that the steps change, relative to the workspace." }),
    risks: shape.list(shape.text(), {
      description: "What could break and what the reviewer should check. Empty if nothing.",
    }),
    check: shape.optional(
      shape.oneOf(CHECKS, {
        description:
          "The project's own command that checks the change, such as its tests. Omit it if none of these is.",
      }),
    ),
  }),
  turnCap: 20,
  prompt: `You plan a change to the code in this workspace. Another agent implements the plan and a third one reviews the result. They see only the plan, not the rest of your work.

Investigate first:
- Find the relevant code with Grep and Glob. Read it together with its callers and tests.
- Follow the existing conventions for naming, structure, error handling and tests.
- If the task is ambiguous, choose the smallest change that satisfies it and state your interpretation in the summary.

This stage is read-only. A good plan:
- names specific files and functions;
- consists of steps that each leave the code working, including tests if the project has them;
- contains nothing that the task does not ask for.

If the code already satisfies the task, say so in the summary and submit a single step: "verify that no change is needed".`,
});

const execute = stage({
  reads: { plan },
  inputSchema: shape.openObject({ findings: shape.list(shape.text()) }),
  allowedTools: ["Read", "Grep", "Glob", "Edit", "Write"],
  completionTool: "submit_diff",
  completionSchema: shape.openObject({
    summary: shape.text({ min: 1, description: "What you changed, in two or three sentences." }),
    changes: shape.list(changeSchema, {
      description: "One entry per file that you changed or created. Empty only if no change was needed.",
    }),
    deviations: shape.list(shape.text(), {
      description: "Where you deviated from the plan, and why. Empty if you followed it.",
    }),
  }),
  turnCap: 40,
  prompt: `You implement this plan in the workspace.

The plan:
{{ctx.upstream.plan}}

Guidelines:
- Read a file before you edit it. Edit requires text that occurs exactly once, so include enough surrounding lines.
- Make only the changes in the plan. Match the style of each file: names, indentation, quotes, comments.
- If a step turns out to be wrong, do what the task needs and report it under deviations. Never report a step that you did not carry out.
- You cannot run commands. Before you finish, Read every changed file again and check that the change is complete: imports, call sites, and tests that refer to the changed code.
- If your input contains review findings, fix each of them. They refer to the current code.

Report exactly what you changed. A reviewer compares your report with the files.`,
});

/** The project's own command, which needs no model. */
const check = oneOf(CHECKS, "{{ctx.upstream.plan.check}}");

const review = stage({
  reads: { plan, execute, check },
  allowedTools: [],
  setup: ({ workspace, upstream: { plan: planned, execute: executed, check: checked } }) => ({
    files: filesNow(workspace, reportedFiles(executed?.changes)),
    check:
      planned?.check === undefined || checked === undefined
        ? "The plan names no command that checks the change."
        : commandRun(planned.check, checked),
  }),
  completionTool: "submit_review",
  completionSchema: shape.openObject({
    verdict: shape.oneOf(["approve", "request_changes"]),
    summary: shape.text({ min: 1, description: "The verdict and its main reason, in two or three sentences." }),
    findings: shape.list(
      shape.openObject({
        severity: shape.oneOf(["blocker", "warning", "note"]),
        file: shape.text(),
        problem: shape.text({ min: 1, description: "What is wrong, and its consequence." }),
        suggestion: shape.text({ description: "How to fix it." }),
      }),
      { description: "Most severe first. Empty if there are none." },
    ),
  }),
  turnCap: 10,
  prompt: `You review a change that another agent made. You have no tools. Everything you need is below; judge only what you can see.

The plan:
{{ctx.upstream.plan}}

The author's report:
{{ctx.upstream.execute}}

The current content of the files in the report:
{{ctx.setup.files}}

The project's own check, run after the change:
{{ctx.setup.check}}

Check in this order:
1. Does the change satisfy the task? Is every step of the plan implemented and every deviation justified?
2. Is the report accurate? A reported change that is missing from the file is a blocker.
3. Is the code correct: logic, edge cases, error handling, missed call sites, outdated tests?
4. Did the check pass? A failure that the change causes is a blocker.
5. Does it match the surrounding code, without changes that the task does not ask for?

Request changes only for blockers: the change does not work, breaks something else, or is not what the task asks for. Matters of style are notes. Do not invent problems, and never approve what you cannot see.`,
});

const MAX_REVIEWS = 3;

/**
 * Plan, execute, review: only the execute stage can change files, and the review stage has no tools. If the plan names one of the
 * usual commands for tests or linters, it is run before the review.
 */
export const codeReview = pipeline({
  id: "codeReview",
  input: shape.openObject({ task: shape.text({ min: 1 }) }),
  stages: { plan, execute, check, review },
  initial: "plan",
  next: {
    plan: () => to("execute", { findings: [] }),
    execute: (_, ctx) => (ctx.upstream.plan?.check === undefined ? to("review") : to("check")),
    check: {
      completed: () => to("review"),
      failed: (result) => fail(`the change was made, but not checked: ${result.message}`),
    },
    review: {
      completed: ({ output }, ctx) => {
        const { verdict, findings, summary } = output;
        const blockers = findings.filter((finding) => finding.severity === "blocker");
        if (verdict === "approve" && blockers.length === 0) {
          return done({
            verdict,
            summary,
            findings,
            changes: ctx.upstream.execute?.changes ?? [],
            plan: ctx.upstream.plan?.summary ?? "",
          });
        }
        if (ctx.visit >= MAX_REVIEWS)
          return fail(`the review still requests changes after ${MAX_REVIEWS} rounds: ${summary}`);
        return to("execute", {
          findings: findings.map(({ file, problem, suggestion }) => `${file}: ${problem} ${suggestion}`.trim()),
        });
      },
      failed: (result) => fail(`the change was made, but not reviewed: ${result.message}`),
    },
  },
});
