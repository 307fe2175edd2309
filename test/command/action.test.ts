import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { artifactFile, artifactJson, machine, readAction, script } from "../support/action-job.ts";
import { at, call, turn } from "../support/command.ts";

const PIPELINE = `
import { done, fail, pipeline, stage, to } from "@sluice/core";
import { timer } from "@sluice/stages";
import { z } from "zod";
const write = stage({
  prompt: "Write.",
  allowedTools: ["Read", "Write(notes/**)"],
  completionTool: "submit",
  completionSchema: z.object({ text: z.string(), wrong: z.boolean().optional() }),
  turnCap: 8,
});
const common = { input: z.object({ task: z.string(), tone: z.string().optional() }), initial: "write" };
const wait = timer({ for: "2s" });
export const change = pipeline({
  ...common, id: "change", stages: { write },
  next: { write: ({ output }) => (output.wrong === true ? fail(output.text) : done(output)) },
});
export const sleepy = pipeline({
  ...common, id: "sleepy", stages: { write, wait },
  next: { write: () => to("wait"), wait: (_result, ctx) => done(ctx.upstream.write) },
});
`;
const writes = (path: string, content = "text\n") => turn(call("Write", { file_path: path, content }));
const submits = (input: { text: string; wrong?: boolean }) => turn(call("submit", input));
const RUN = { pipeline: "./change.ts#change", task: "write a note", model: "scripted:script.json" };

/** A job in a checkout whose model makes these turns. */
async function jobOf(turns: Parameters<typeof script>[0][string]) {
  const job = machine();
  await job.checkOut({ "change.ts": PIPELINE, "script.json": script({ write: turns }), "src/a.js": "let a;\n" });
  return job;
}

test("a run that changes something is green, with the output, the patch, the report and the verified record", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const ended = await job.run(RUN);
  expect(ended.log.split("\n").filter((line) => line.includes("::error"))).toEqual([]);
  expect(ended.green).toBe(true);
  const { "run-id": runId = "", files, ...outputs } = ended.outputs;
  expect(outputs).toEqual({
    conclusion: "success",
    status: "completed",
    output: '{"text":"done"}',
    denied: "0",
    "cost-usd": "0",
    "changed-files": '["notes/one.md"]',
  });
  expect([...ended.artifacts.keys()]).toEqual(["sluice"]);
  expect(artifactFile(ended, "sluice", "report.html")).toContain(runId);
  expect(artifactFile(ended, "sluice", "run.jsonl")).toContain(runId);
  expect(artifactJson(ended, "sluice", "result.json")).toMatchObject({ runId, conclusion: "success" });
  const patch = join(job.folder, "change.patch");
  writeFileSync(patch, artifactFile(ended, "sluice", "change.patch"));
  await job.git("clean", "-qfd");
  await job.git("apply", patch);
  expect(readFileSync(join(job.folder, "project/notes/one.md"), "utf8")).toBe("text\n");
  expect(ended.summary).toContain("## Sluice: completed\n");
  expect(ended.summary).toContain("<code>notes/one.md</code></td><td>added</td><td>+1 -0");
  expect(ended.summary).toMatch(/verified: \d+ records/);
  expect(ended.injected).toBe("");
});
