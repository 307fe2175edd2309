import { defineTool, done, fail, pipeline, route, stage, to } from "@sluice/core";
import { progressOf, type ScriptedTurn, scriptedModel } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { session } from "../support/run-kit.ts";

const summarize = stage({
  inputSchema: z.object({ progress: z.string() }),
  prompt: "Write what was done and what is left.\n\n{{ctx.input.progress}}",
  allowedTools: [],
  completionTool: "submit_summary",
  completionSchema: z.object({ summary: z.string() }),
  turnCap: 2,
});
const work = stage({
  reads: { summarize },
  prompt: ({ upstream }) =>
    upstream.summarize === undefined ? "Do the task." : `Do the task. Before: ${upstream.summarize.summary}`,
  allowedTools: ["Look"],
  completionTool: "finish",
  completionSchema: z.object({ text: z.string() }),
  turnCap: 40,
});
const patient = pipeline({
  id: "patient",
  input: z.object({ task: z.string() }),
  stages: { work, summarize },
  initial: "work",
  limits: { maxVisits: 3 },
  next: {
    work: {
      completed: route([], ({ output }) => done(output)),
      failed: route(["summarize"], (failed) =>
        failed.code === "context_overflow" ? to("summarize", { progress: progressOf(failed) }) : fail(failed.message),
      ),
    },
    summarize: route(["work"], () => to("work")),
  },
});

const SECRET = "hunter2-hunter2-77";
const look = defineTool({
  name: "Look",
  description: "Looks.",
  effect: "read",
  subjects: () => [],
  input: z.object({ at: z.string() }),
  execute: ({ at }: { readonly at: string }) =>
    Promise.resolve({ ok: true, output: `seen ${at} ${SECRET} ${"long ".repeat(400)}` }),
});
const tooLong: ScriptedTurn = {
  errors: [{ status: 400, message: "prompt is too long: 214310 tokens > 200000 maximum" }],
};
const looks = (at: string): ScriptedTurn => ({ text: `I look at ${at}.`, calls: [{ tool: "Look", input: { at } }] });
const summary: ScriptedTurn = { calls: [{ tool: "submit_summary", input: { summary: "a is done" } }] };

/** Runs the pipeline with these turns of `work`, and returns the system messages of its stages in order. */
async function ran(turns: readonly ScriptedTurn[], summaries = 1) {
  const script = { stages: { work: [...turns], summarize: Array.from({ length: summaries }, () => summary) } };
  const model = scriptedModel(script);
  const heard: { readonly stage: string; readonly system: string }[] = [];
  const listening = {
    ...model,
    at: (position: Parameters<typeof model.at>[0]) => {
      const inner = model.at(position);
      const doStream: typeof inner.doStream = (call) => {
        const first = call.prompt[0];
        heard.push({ stage: position.stage, system: first?.role === "system" ? first.content : "" });
        return inner.doStream(call);
      };
      return { ...inner, doStream };
    },
  };
  const live = session({ model: listening, tools: [look], env: { A_PASSWORD: SECRET }, secrets: ["A_PASSWORD"] });
  const result = await live.run(patient, { task: "Look around." });
  return { result, heard };
}

test("a stage whose transcript does not fit is summarized by another one, and starts again with the summary", async () => {
  const done: ScriptedTurn = { calls: [{ tool: "finish", input: { text: "all" } }] };
  const { result, heard } = await ran([looks("a"), looks("b"), tooLong, done]);
  expect(result).toMatchObject({ status: "completed", output: { text: "all" } });
  expect(heard.map(({ stage }) => stage)).toEqual(["work", "work", "work", "summarize", "work"]);
  expect(heard[4]?.system).toContain("Before: a is done");
});

test("the digest names texts, calls and results, is cut, and holds no secret", async () => {
  const turns = Array.from({ length: 30 }, (_, index) => looks(`place-${index}`));
  const { result, heard } = await ran([...turns, tooLong, tooLong], 2);
  const digest = heard.find(({ stage }) => stage === "summarize")?.system ?? "";
  for (const text of [
    "It said: I look at place-0.",
    'It called Look with {"at":"place-29"}',
    "Look returned: seen place-29",
  ])
    expect(digest).toContain(text);
  expect(digest).not.toContain(SECRET);
  const failed = result.stages.find(({ status }) => status === "failed");
  const text = failed?.status === "failed" ? progressOf(failed) : "";
  expect(text.length).toBeLessThanOrEqual(12_000);
  expect(text).toMatch(/^What an agent did, from its transcript\. It is data/);
});

test("the cap on visits ends a run that never fits", async () => {
  const { result } = await ran([tooLong, tooLong, tooLong, tooLong, tooLong], 5);
  expect(result).toMatchObject({ status: "failed", error: { code: "limit_visits" } });
});

test("another failure has no digest", async () => {
  const { result } = await ran([looks("a"), { errors: [{ status: 400, message: "no" }] }]);
  const failed = result.stages.find(({ status }) => status === "failed");
  expect(failed?.status === "failed" ? progressOf(failed) : "none").toBe("");
});
