import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { done, pipeline, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { resolveModel } from "../../packages/stages/src/models/registry.ts";
import { type EndlessAnswer, type EndlessServer, startEndlessServer } from "../support/endless-server.ts";
import { handClock } from "../support/hand-clock.ts";
import { PROVIDERS, type ProviderName, providerOf } from "../support/providers.ts";
import { session } from "../support/run-kit.ts";

// What a service sends is read as it comes: a line, an event or a page without an end must not fill the memory.

const MIB = 1024 * 1024;
const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

async function asked(name: ProviderName, answer: EndlessAnswer) {
  const server = await startEndlessServer(answer);
  const { model, env } = providerOf(name);
  const resolved = await resolveModel(model, { env: env(server.url), cwd: "/", clock: handClock() });
  const outcome = await callModel({
    model: resolved.at({ stage: "s", turn: 0, attempt: 1 }),
    prompt,
    tools: [],
    signal: new AbortController().signal,
  });
  return { server, outcome };
}

function expectRefused({ server, outcome }: { readonly server: EndlessServer; readonly outcome: unknown }): void {
  expect(outcome).toMatchObject({
    ok: false,
    error: { kind: "permanent", code: "reply_too_large", message: expect.stringContaining("16777216 bytes") },
  });
  // What was on its way beside what was read.
  expect(server.sent).toBeLessThan(40 * MIB);
}

describe.each(PROVIDERS)("%s", (name) => {
  test("an answer without the end of a line is left after 16 MiB, and is not asked for again", async () => {
    const chunk = "x".repeat(MIB);
    expectRefused(await asked(name, { start: "data: ", chunk, most: 64 * MIB }));
  });

  test.each([
    [429, { kind: "transient", code: "rate_limited" }],
    [400, { kind: "permanent" }],
    [500, { kind: "transient" }],
  ])("of a refusal with status %i a mebibyte is read, and its status counts", async (status, error) => {
    const chunk = "<p>so sorry</p>".repeat(10_000);
    const { server, outcome } = await asked(name, { status, headers: {}, chunk, most: 64 * MIB });
    expect(outcome).toMatchObject({ ok: false, error: { ...error, status } });
    expect(server.sent).toBeLessThan(20 * MIB);
  });
});

test("an event without its end is left like a line without one", async () => {
  const chunk = `data: ${"x".repeat(1_000)}\n`.repeat(1_000);
  expectRefused(await asked("anthropic", { chunk, most: 64 * MIB }));
});

test("so is an answer that calls itself something else than events", async () => {
  const headers = { "content-type": "application/json" };
  expectRefused(await asked("anthropic", { headers, start: '{"a":"', chunk: "x".repeat(MIB), most: 64 * MIB }));
});

test("a run ends with what was wrong, after one request", async () => {
  const server = await startEndlessServer({ start: "data: ", chunk: "x".repeat(MIB), most: 64 * MIB });
  const { model, env } = providerOf("anthropic");
  const work = stage({
    prompt: "Do it.",
    allowedTools: [],
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 2,
  });
  const end = { work: ({ output }: { output: { text: string } }) => done(output.text) };
  const flow = pipeline({ id: "work", input: z.object({}), stages: { work }, initial: "work", next: end });
  const result = await session({ model, env: env(server.url) }).run(flow, {});
  const message = expect.stringContaining("16777216 bytes");
  expect(result).toMatchObject({ status: "failed", error: { code: "model", message } });
  expect(server.requests).toBe(1);
});
