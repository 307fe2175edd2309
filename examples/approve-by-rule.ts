// A rule answers grant requests: it approves new files below notes/ and denies everything else with a reason that the model
// reads. Each approval covers one call with exactly these arguments.
//   node examples/approve-by-rule.ts
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackInteractor, done, field, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const byRule = callbackInteractor("notes rule", ({ kind, body }) => {
  if (kind !== "grantStageTool") return undefined; // another interactor may answer
  const file = field(field(body, "input"), "file_path");
  const isNote = field(body, "tool") === "Write" && typeof file === "string" && /^notes\/[\w-]+\.md$/.test(file);
  return isNote ? { kind: "approve" } : { kind: "deny", reason: "only new notes may be written while reading" };
});

const research = stage({
  prompt: "Answer the task from the files of the workspace.",
  allowedTools: ["Read", "Grep", "Glob"],
  visibility: "session", // the model sees all tools, also those that need a grant
  completionTool: "submit_answer",
  completionSchema: z.object({ answer: z.string() }),
  turnCap: 10,
});
const answers = pipeline({
  id: "answers",
  input: z.object({ task: z.string() }),
  stages: { research },
  initial: "research",
  next: { research: ({ output }) => done(output.answer) },
});

const write = (file_path: string) => ({ calls: [{ tool: "Write", input: { file_path, content: "Seen today.\n" } }] });
const script = scriptedModel({
  stages: {
    research: [
      write("src/main.js"),
      write("notes/today.md"),
      { calls: [{ tool: "submit_answer", input: { answer: "It is in notes/today.md." } }] },
    ],
  },
});
const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
const session = createSession({ model: process.env.SLUICE_MODEL ?? script, cwd: workspace, interactors: [byRule] });
const run = session.start(answers, { task: "What was seen today?" });
for await (const { type, data } of run.events) {
  if (type === "grant.requested") console.log("requests:", field(data.body, "argsSummary"));
  if (type === "grant.answered") console.log("  ->", data.answer, "by", data.by);
}
const result = await run;
console.log(result.status, existsSync(join(workspace, "notes/today.md")), existsSync(join(workspace, "src/main.js")));
await session.close();
