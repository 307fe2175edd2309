// Two reviewers read the same text in parallel, and a third state joins their findings. All outputs are typed.
//   node examples/fan-out.ts
import { done, fanOut, pipeline, stage, to } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const findings = z.object({ findings: z.array(z.string()) });
const text = z.object({ text: z.string() });
const reviewer = (prompt: string) =>
  stage({
    inputSchema: text,
    prompt,
    allowedTools: [],
    completionTool: "submit_findings",
    completionSchema: findings,
    turnCap: 3,
  });

const intake = stage({
  prompt: "Find the text to review in the task and pass it on verbatim.",
  allowedTools: ["Read"],
  completionTool: "submit_text",
  completionSchema: text,
  turnCap: 5,
});
const facts = reviewer("List what is wrong in this text.");
const style = reviewer("List what is hard to read in this text.");
const verdict = stage({
  reads: { facts, style },
  prompt: "Facts: {{ctx.upstream.facts.findings}}\nStyle: {{ctx.upstream.style.findings}}\nIs it ready?",
  allowedTools: [],
  completionTool: "submit_verdict",
  completionSchema: z.object({ ready: z.boolean() }),
  turnCap: 3,
});

const review = pipeline({
  id: "review",
  input: z.object({ task: z.string() }),
  stages: { intake, facts, style, verdict },
  initial: "intake",
  next: {
    // Both run in parallel, each in a child run. A failure of one would cancel the other and fail intake.
    intake: ({ output }) => fanOut([to("facts", output), to("style", output)], { join: "verdict" }),
    verdict: ({ output }, ctx) => {
      const both = [...(ctx.upstream.facts?.findings ?? []), ...(ctx.upstream.style?.findings ?? [])];
      return done({ ready: output.ready, findings: both });
    },
  },
});

const script = scriptedModel({
  stages: {
    intake: [{ calls: [{ tool: "submit_text", input: { text: "The Moon is a planet, which it is." } }] }],
    facts: [{ calls: [{ tool: "submit_findings", input: { findings: ["The Moon is a moon."] } }] }],
    style: [{ calls: [{ tool: "submit_findings", input: { findings: ["It says the same thing twice."] } }] }],
    verdict: [{ calls: [{ tool: "submit_verdict", input: { ready: false } }] }],
  },
});
const session = createSession({ model: process.env.SLUICE_MODEL ?? script, maxParallel: 2 });
const result = await session.run(review, { task: "Review this text: The Moon is a planet, which it is." });
console.log(result.status === "completed" ? result.output : result);
console.log(result.stages.map((stage) => `${stage.executionId} ${stage.status}`).join(", "));
await session.close();
