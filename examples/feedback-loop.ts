// A reviewer sends a plan back to the state that wrote it, which is also the initial one, with typed findings.
//   node examples/feedback-loop.ts
import { done, fail, pipeline, route, stage, to } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const planning = z.object({
  task: z.string(),
  /** What the last review found; absent at the start of the run. */
  findings: z.array(z.string()).optional(),
});
const plan = stage({
  inputSchema: planning,
  prompt: ({ input }) =>
    input.findings === undefined
      ? "Plan the task in a few steps."
      : `Plan the task again. The review found:\n- ${input.findings.join("\n- ")}`,
  allowedTools: ["Read", "Grep", "Glob"],
  completionTool: "submit_plan",
  completionSchema: z.object({ steps: z.array(z.string()).min(1) }),
  turnCap: 10,
});
const review = stage({
  inputSchema: z.object({ steps: z.array(z.string()) }),
  prompt: "Review the plan of the input. Submit no findings if it is ready.",
  allowedTools: ["Read"],
  completionTool: "submit_review",
  completionSchema: z.object({ findings: z.array(z.string()) }),
  turnCap: 5,
});

const planned = pipeline({
  id: "planned",
  input: z.object({ task: z.string() }),
  stages: { plan, review },
  initial: "plan",
  limits: { maxVisits: 4 },
  next: {
    plan: route(["review"], ({ output }) => to("review", output)),
    review: route(["plan"], ({ output }, ctx) => {
      if (output.findings.length === 0) return done(ctx.upstream.plan?.steps ?? []);
      // The last of the visits that `maxVisits` allows: end with the reason instead of at the cap.
      if (ctx.visit >= 3) return fail(`not ready after ${ctx.visit} reviews: ${output.findings.join("; ")}`);
      return to("plan", { task: ctx.run.input.task, findings: output.findings });
    }),
  },
});

const script = scriptedModel({
  stages: {
    plan: [
      { calls: [{ tool: "submit_plan", input: { steps: ["rename the option"] } }] },
      { calls: [{ tool: "submit_plan", input: { steps: ["rename the option", "rename it in the tests"] } }] },
    ],
    review: [
      { calls: [{ tool: "submit_review", input: { findings: ["the tests use the old name"] } }] },
      { calls: [{ tool: "submit_review", input: { findings: [] } }] },
    ],
  },
});
const session = createSession({ model: process.env.SLUICE_MODEL ?? script });
const result = await session.run(planned, { task: "Rename the option --quick to --fast." });
console.log(result.status === "completed" ? result.output : result);
console.log(result.stages.map((one) => `${one.executionId} ${one.status}`).join(", "));
await session.close();
