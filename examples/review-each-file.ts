// A list that a model names at run time: one review for each file, and a summary of how all of them ended.
//   node examples/review-each-file.ts
import { done, forEach, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const find = stage({
  prompt: "List the files of the change.",
  allowedTools: ["Glob"],
  completionTool: "submit_files",
  completionSchema: z.object({ files: z.array(z.string()) }),
  turnCap: 5,
});
const review = stage({
  inputSchema: z.object({ file: z.string() }),
  prompt: "Review {{ctx.input.file}}.",
  allowedTools: ["Read"],
  completionTool: "submit_review",
  completionSchema: z.object({ findings: z.array(z.string()) }),
  turnCap: 3,
});
const summary = stage({
  reads: { review },
  prompt: (ctx) => `Summarize:\n${(ctx.items?.review ?? []).map((item) => JSON.stringify(item)).join("\n")}`,
  allowedTools: [],
  completionTool: "submit_summary",
  completionSchema: z.object({ ready: z.boolean() }),
  turnCap: 3,
});

const reviewEachFile = pipeline({
  id: "reviewEachFile",
  input: z.object({ task: z.string() }),
  stages: { find, review, summary },
  initial: "find",
  next: {
    // At most two files at a time. With "settle", one failed review does not stop the others.
    find: ({ output }) =>
      forEach(
        "review",
        output.files.map((file) => ({ file })),
        { key: ({ file }) => file, join: "summary", maxParallel: 2, onFailure: "settle" },
      ),
    summary: ({ output }, ctx) =>
      done({
        ready: output.ready,
        files: (ctx.items?.review ?? []).map(({ key, status, output }) => ({ key, status, output: output ?? null })),
      }),
  },
});

const reviewed = (...findings: readonly string[]) => [{ calls: [{ tool: "submit_review", input: { findings } }] }];
const script = scriptedModel({
  stages: {
    find: [{ calls: [{ tool: "submit_files", input: { files: ["src/a.ts", "src/b.ts", "src/c.ts"] } }] }],
    // Of every file that `items` does not name.
    review: reviewed(),
    summary: [{ calls: [{ tool: "submit_summary", input: { ready: false } }] }],
  },
  items: { review: { "src/b.ts": reviewed("the loop never ends"), "src/c.ts": [{ text: "This looks fine." }] } },
});
const session = createSession({ model: process.env.SLUICE_MODEL ?? script });
const result = await session.run(reviewEachFile, { task: "Review the change." });
console.log(result.status === "completed" ? JSON.stringify(result.output, null, 2) : result);
console.log(
  result.stages.map(({ executionId, key, status }) => [executionId, key, status].join(" ").trim()).join("\n"),
);
await session.close();
