import { done, pipeline, stage } from "@sluice/core";
import { sendMessage } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { PROVIDERS } from "../support/providers.ts";
import { tool } from "../support/run-kit.ts";
import { wiredSession } from "../support/wired-session.ts";

test.each(PROVIDERS)(
  "what people say before the first turn and beside results is in a request that %s takes, in order",
  async (provider) => {
    const said: (() => Promise<void>)[] = [];
    const pipe = pipeline({
      id: "one",
      input: z.object({ task: z.string() }),
      stages: {
        one: stage({
          prompt: "Listen.",
          allowedTools: ["Look"],
          completionTool: "finish",
          completionSchema: z.object({ summary: z.string() }),
          turnCap: 4,
          setup: async () => {
            await said.shift()?.();
            return null;
          },
        }),
      },
      initial: "one",
      next: { one: ({ output }) => done(output) },
    });
    const look = tool("Look", {
      effect: "read",
      execute: async () => {
        for (const say of said.splice(0)) await say();
        return { ok: true, output: "seen" };
      },
    });
    const wired = await wiredSession(
      provider,
      [{ calls: [{ name: "Look", input: {} }] }, { calls: [{ name: "finish", input: { summary: "ok" } }] }],
      { tools: [look] },
    );
    const handle = wired.live.start(pipe, { task: "t" });
    for (const text of ["first", "second", "third"])
      said.push(() => sendMessage(wired.live.host, handle.runId, `the ${text}`, "me"));
    expect(await handle).toMatchObject({ status: "completed" });
    const people = wired
      .requests()
      .map(({ messages }) =>
        messages.flatMap(({ role, text, results }) => [
          ...results.map(() => "result"),
          ...(role !== "assistant" ? (text.match(/the (?:first|second|third)/g) ?? []) : []),
        ]),
      );
    expect(people).toEqual([["the first"], ["the first", "result", "the second", "the third"]]);
  },
);
