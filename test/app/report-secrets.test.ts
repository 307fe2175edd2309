import { done, pipeline, stage, to } from "@sluice/core";
import { sendMessage } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { textIn } from "../support/page-parts.ts";
import { reportOf, soundPage } from "../support/report-kit.ts";
import { eventually, tool } from "../support/run-kit.ts";
import { answerAll, scripted } from "../support/run-views.ts";

/** One that a pattern knows. */
const key = (name: string): string => `sk-${name}-${"0123456789abcdef".repeat(2)}`;
/** One that nothing but the name it stands under gives away. */
const named = (name: string): string => `pass-phrase-of-${name}`;
/** One that only its value gives away. */
const known = "K3y-0f-the-c4stle-Zq81";

const completion = { completionTool: "submit", completionSchema: z.object({ text: z.string(), password: z.string() }) };
const leaky = pipeline({
  id: "leaky",
  input: z.object({ task: z.string(), token: z.string() }),
  stages: {
    work: stage({
      ...completion,
      prompt: "Work.",
      allowedTools: ["look", "AskUser"],
      turnCap: 4,
      assert: ({ status }, ctx) => (status === "completed" && ctx.attempt === 1 ? { retry: key("retry") } : "ok"),
      retryPolicy: { maxAttempts: 2 },
    }),
    last: stage({ ...completion, prompt: "End.", allowedTools: [], turnCap: 2 }),
  },
  initial: "work",
  next: {
    work: () => to("last", undefined, { context: { secret: named("context"), seen: key("context") } }),
    last: ({ output }) => done({ ...output, api_key: named("output"), said: known }),
  },
});

const submit = { calls: [{ tool: "submit", input: { text: key("result"), password: named("result") } }] };
const look = { tool: "look", input: { at: key("argument"), password: named("argument"), known } };
const change = { tool: "change", input: { file: key("refused"), password: named("refused"), known } };
const bash = {
  tool: "Bash",
  input: { command: `curl -H 'Authorization: Bearer ${key("bearer")}' https://u:${named("url")}@h.example` },
};
const ask = { tool: "AskUser", input: { question: `Is it ${key("question")} or ${known}?` } };

test("no secret is in a page, wherever it was planted", async () => {
  const live = scripted(
    {
      work: [
        {
          text: `It is ${key("text")}, or ${known}.`,
          reasoning: `${key("thought")} ${known}`,
          calls: [look, change, bash, ask, { tool: key("tool"), input: {} }],
          errors: [{ status: 503, message: key("provider") }],
        },
        submit,
        submit,
        submit,
      ],
      last: [submit],
    },
    {
      env: { CASTLE_TOKEN: known },
      tools: [
        tool("look", {
          effect: "read",
          execute: async () => ({
            ok: true,
            output: {
              text: `${key("output")} ${known}`,
              cookie: named("output"),
              nested: [{ apiKey: named("nested") }],
            },
            facts: { token: named("facts"), seen: key("facts") },
          }),
        }),
        tool("change", { effect: "write", execute: async () => ({ ok: false, output: key("error") }) }),
      ],
    },
  );
  const handle = live.start(leaky, { task: `Use ${key("task")} and ${known}.`, token: named("input") });
  await eventually(async () => (await live.host.get(handle.runId)) !== undefined, "the run");
  await sendMessage(live.host, handle.runId, `and ${key("message")}`, "ann");
  const ended = { value: false };
  const result = handle.then((value) => {
    ended.value = true;
    return value;
  });
  const pages: string[] = [];
  await eventually(async () => {
    live.clock.turn(1_000);
    const open = await live.host.requests(handle.runId);
    if (open.length > 0) pages.push((await reportOf(live.host, handle.runId)).page);
    const isQuestion = open.some(({ kind }) => kind === "askUser");
    const answer = isQuestion
      ? { kind: "value", value: key("answer") }
      : { kind: "deny", reason: `because ${key("reason")} ${known}` };
    await answerAll(live, handle.runId, answer);
    return ended.value;
  }, "the run's end");
  expect((await result).status).toBe("completed");
  pages.push((await reportOf(live.host, handle.runId)).page);
  expect(pages.length).toBeGreaterThan(2);
  for (const page of pages) {
    expect(page.match(/sk-[a-z]+-0123|pass-phrase-of-\w+|K3y-0f/g) ?? []).toEqual([]);
    expect(textIn(soundPage(page))).toContain("[redacted:");
  }
});
