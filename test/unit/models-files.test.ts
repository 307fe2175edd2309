import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { defineTool, done, type Json, pipeline, stage } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { tempFolder } from "../support/tools.ts";

const look = defineTool({
  name: "Look",
  description: "Looks at something.",
  input: z.object({ at: z.string() }),
  effect: "read",
  subjects: () => [],
  execute: async ({ at }) => ({
    ok: true,
    output: `${at} is red`,
    ...(at === "logo" ? { files: [{ name: "logo.png", mediaType: "image/png", data: "aaaa" }] } : {}),
  }),
});

const looking = pipeline({
  id: "looking",
  input: z.object({ task: z.string() }),
  stages: {
    work: stage({
      prompt: "Work.",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 9,
    }),
  },
  initial: "work",
  next: { work: ({ output }) => done(output.text) },
});

/** Makes these calls, one a turn, and keeps each prompt that it gets, with its text at that time. */
function callingModel(calls: readonly { readonly tool: string; readonly input: Json }[]) {
  const prompts: { readonly prompt: LanguageModelV4Prompt; readonly text: string }[] = [];
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "none",
    modelId: "text",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streams are used")),
    doStream: async ({ prompt }) => {
      const call = calls[prompts.length];
      prompts.push({ prompt, text: JSON.stringify(prompt) });
      if (call === undefined) throw new Error("no call is left");
      const parts: readonly LanguageModelV4StreamPart[] = [
        {
          type: "tool-call",
          toolCallId: `call_${prompts.length}`,
          toolName: call.tool,
          input: JSON.stringify(call.input),
        },
        {
          type: "finish",
          finishReason: { unified: "tool-calls", raw: undefined },
          usage: {
            inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
            outputTokens: { total: 1, text: 1, reasoning: 0 },
          },
        },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
  return { model, prompts };
}

async function promptsOf(looks: readonly string[]) {
  const calls = [...looks.map((at) => ({ tool: "Look", input: { at } })), { tool: "finish", input: { text: "red" } }];
  const { model, prompts } = callingModel(calls);
  const session = createSession({ model, cwd: tempFolder().root, env: {}, tools: [look], sandbox: "off" });
  expect(await session.run(looking, { task: "look" })).toMatchObject({ status: "completed", output: "red" });
  await session.close();
  return prompts;
}

test("a model gets the same list of messages each turn while no result has a file", async () => {
  const prompts = await promptsOf(["door", "wall", "roof"]);
  expect(prompts).toHaveLength(4);
  expect(new Set(prompts.map(({ prompt }) => prompt)).size).toBe(1);
});

test("a file of a result is never given to a model that reads only text, also turns later", async () => {
  const prompts = await promptsOf(["door", "logo", "wall", "roof"]);
  expect(prompts.map(({ text }) => text.includes("aaaa"))).toEqual([false, false, false, false, false]);
  const isNamed = prompts.map(({ text }) => text.includes("[logo.png (image/png) is not shown"));
  expect(isNamed).toEqual([false, false, true, true, true]);
});
