import { done, fail, pipeline, stage, to } from "@sluice/core";
import { z } from "zod";
import { changeSchema, filesNow, reportedFiles } from "./changes.ts";

const plan = stage({
  allowedTools: ["Read", "Grep", "Glob"],
  completionTool: "submit_plan",
  completionSchema: z.object({
    summary: z.string().min(1).describe("What will be different afterwards, in two or three sentences."),
    steps: z
      .array(z.string().min(1))
      .min(1)
      .describe(
        "One change each, in order, naming the file and what changes in it. Specific enough to carry out without asking.",
      ),
    files: z.array(z.string()).describe("Every file the steps touch, relative to the workspace."),
    risks: z
      .array(z.string())
      .describe("What could break, and what the review should look at. Empty when there is nothing."),
  }),
  turnCap: 20,
  prompt: `You plan a change to the code in this workspace. Somebody else carries your plan out and sees nothing of your work but the plan; a third person reviews the result against it.

Read before you decide:
- Find the code the task is about with Grep and Glob, then Read the parts that matter, with their callers and their tests.
- Follow what is there: naming, structure, error handling, how tests are written. A plan that fits the code beats a plan that is clever.
- When the task leaves something open, choose the smallest change that does what was asked, and say in the summary what you chose.

You cannot change anything in this stage, and you do not need to. A good plan:
- names files and functions, not areas;
- has steps that each leave the code working, tests included where the project has them;
- contains nothing that the task did not ask for.

If the code already does what the task asks, say so in the summary and make the one step "verify that nothing has to change".`,
});

const execute = stage({
  reads: { plan },
  inputSchema: z.object({ findings: z.array(z.string()) }),
  allowedTools: ["Read", "Grep", "Glob", "Edit", "Write"],
  completionTool: "submit_diff",
  completionSchema: z.object({
    summary: z.string().min(1).describe("What you changed, in two or three sentences."),
    changes: z
      .array(changeSchema)
      .describe("One entry for each file you changed or created; empty only when nothing had to change."),
    deviations: z.array(z.string()).describe("Where you left the plan, and why. Empty when you followed it."),
  }),
  turnCap: 40,
  prompt: `You carry out this plan in the workspace.

The plan:
{{ctx.upstream.plan}}

How to work:
- Read a file before you edit it; Edit needs text that occurs exactly once, so take enough of the lines around it.
- Make the changes of the plan and no others. Keep the style of the file: names, indentation, quotes, comments.
- When a step turns out wrong, do what the task needs and record it under deviations. Do not pretend it was carried out.
- You cannot run anything here. Before you finish, Read every file you changed once more and check that it is complete: imports, call sites, tests that name what you changed.
- If your input holds findings of a review, mend each of them; they are about the code as it is now.

Report what you really changed. A reviewer compares your report with the files.`,
});

const review = stage({
  reads: { plan, execute },
  allowedTools: [],
  setup: (ctx) => filesNow(ctx.workspace, reportedFiles(ctx.upstream.execute?.changes)),
  completionTool: "submit_review",
  completionSchema: z.object({
    verdict: z.enum(["approve", "request_changes"]),
    summary: z.string().min(1).describe("The verdict and its main reason, in two or three sentences."),
    findings: z
      .array(
        z.object({
          severity: z.enum(["blocker", "warning", "note"]),
          file: z.string(),
          problem: z.string().min(1).describe("What is wrong and what it leads to."),
          suggestion: z.string().describe("How to mend it."),
        }),
      )
      .describe("Most severe first. Empty when there is nothing to say."),
  }),
  turnCap: 10,
  prompt: `You review a change that somebody else made. You have no tools: everything you need is below, and you may only judge what you can see.

The plan:
{{ctx.upstream.plan}}

What the author reports:
{{ctx.upstream.execute}}

The files the author reports, as they are on disk now:
{{ctx.setup}}

Judge in this order:
1. Does the change do what the task asked? Is each step of the plan done, and is every deviation justified?
2. Is the report true? A reported change that the file does not show is a blocker.
3. Is the code correct: logic, edge cases, errors, callers that were forgotten, tests that no longer fit?
4. Is it in keeping with the code around it, and free of what nobody asked for?

Request changes only for blockers: something does not work, breaks something else, or is not what was asked. Matters of taste are notes. Never invent a problem to have something to say, and never approve what you cannot see.`,
});

/** How often a review may send the change back. */
const MAX_REVIEWS = 3;

/** Plan, Execute, Review: the change is planned without hands, made after the plan, and judged by somebody who cannot touch it. */
export const codeReview = pipeline({
  id: "codeReview",
  input: z.object({ task: z.string().min(1) }),
  stages: { plan, execute, review },
  initial: "plan",
  next: {
    plan: () => to("execute", { findings: [] }),
    execute: () => to("review"),
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
          return fail(`the review still asks for changes after ${MAX_REVIEWS} rounds: ${summary}`);
        return to("execute", {
          findings: findings.map(({ file, problem, suggestion }) => `${file}: ${problem} ${suggestion}`.trim()),
        });
      },
      failed: (result) => fail(`the change was made, but not reviewed: ${result.message}`),
    },
  },
});
