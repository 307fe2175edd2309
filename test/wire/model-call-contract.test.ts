import type { LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { describe, expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { PROVIDERS, TOOLS, wire } from "../support/providers.ts";
import type { ServerReply } from "../support/sse-server.ts";

// Our driver and the SDK's streamText, on the same bytes: what they hear of a turn piece by piece, the parts they make of
// it, and the request each of them sends for the next one must agree.

const SYSTEM = "You plan.";
const TASK = "refactor auth";
const NUDGE = "Go on.";

/** What both ways tell of one turn. */
interface Account {
  /** Pieces of text as they came. */
  readonly heard: readonly string[];
  /** The parts of the message that goes into the transcript. */
  readonly parts: readonly Json[];
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly input: unknown }[];
  readonly finishReason: string;
  readonly rawFinishReason: string | undefined;
  readonly usage: Readonly<Record<"input" | "output" | "cacheRead" | "cacheWrite" | "reasoning", number>>;
  readonly response: { readonly id: string | undefined; readonly model: string | undefined };
  readonly metadata: Json;
}
/** Instead, when there was no turn to tell of. */
interface Failed {
  readonly heard: readonly string[];
  readonly failed: true;
  /** HTTP status, where the provider gave one. */
  readonly status: number | undefined;
}

const DENIED = (toolName: string) => ({
  type: "error-json" as const,
  value: { code: "tool_call_denied", tool: toolName },
});

async function ours(model: LanguageModelV4, turns: number): Promise<(Account | Failed)[]> {
  let prompt: LanguageModelV4Prompt = [
    { role: "system", content: SYSTEM },
    { role: "user", content: [{ type: "text", text: TASK }] },
  ];
  const accounts: (Account | Failed)[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const heard: string[] = [];
    const reply = await callModel({
      model,
      prompt,
      tools: TOOLS,
      toolChoice: { type: "auto" },
      maxOutputTokens: 500,
      signal: new AbortController().signal,
      onText: (delta, kind) => heard.push(`${kind}: ${delta}`),
    });
    if (!reply.ok) {
      accounts.push({ heard, failed: true, status: reply.error.status });
      continue;
    }
    const { usage, response, finishReason, rawFinishReason } = reply;
    accounts.push({
      heard,
      parts: plain(reply.content),
      calls: reply.calls.map(({ id, tool: name, input }) => ({ id, tool: name, input })),
      finishReason,
      rawFinishReason,
      usage: {
        input: usage.inputTokens,
        output: usage.outputTokens,
        cacheRead: usage.cacheReadTokens,
        cacheWrite: usage.cacheWriteTokens,
        reasoning: usage.reasoningTokens,
      },
      response: { id: response?.id, model: response?.model ?? model.modelId },
      metadata: plainOne(reply.providerMetadata),
    });
    const results = reply.calls.map(({ id, tool: toolName }) => ({
      type: "tool-result" as const,
      toolCallId: id,
      toolName,
      output: DENIED(toolName),
    }));
    prompt = [
      ...prompt,
      { role: "assistant", content: JSON.parse(JSON.stringify(reply.content)) },
      results.length > 0
        ? { role: "tool", content: results }
        : { role: "user", content: [{ type: "text", text: NUDGE }] },
    ];
  }
  return accounts;
}

async function theirs(model: LanguageModelV4, turns: number): Promise<(Account | Failed)[]> {
  const tools: ToolSet = Object.fromEntries(
    TOOLS.map(({ name, description, inputSchema }) => [
      name,
      tool({ ...(description === undefined ? {} : { description }), inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
  const messages: ModelMessage[] = [{ role: "user", content: TASK }];
  const accounts: (Account | Failed)[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const heard: string[] = [];
    const errors: unknown[] = [];
    const result = streamText({
      model,
      instructions: SYSTEM,
      messages,
      tools,
      maxOutputTokens: 500,
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    });
    let ended = "";
    try {
      for await (const part of result.fullStream) {
        if (part.type === "text-delta" && part.text !== "") heard.push(`text: ${part.text}`);
        if (part.type === "reasoning-delta" && part.text !== "") heard.push(`reasoning: ${part.text}`);
        if (part.type === "finish") ended = part.finishReason;
      }
    } catch (broken) {
      errors.push(broken);
    }
    if (errors.length > 0 || ended === "interrupted" || ended === "error") {
      accounts.push({ heard, failed: true, status: statusOf(errors[0]) });
      continue;
    }
    const step = await result.finalStep;
    const { usage, response, toolCalls, finishReason, rawFinishReason, providerMetadata } = step;
    const said = response.messages.filter(({ role }) => role === "assistant");
    accounts.push({
      heard,
      parts: said.flatMap(({ content }) =>
        typeof content === "string" ? [{ type: "text", text: content }] : plain(content),
      ),
      calls: toolCalls.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, tool: toolName, input })),
      finishReason,
      rawFinishReason,
      usage: {
        input: usage.inputTokens ?? 0,
        output: usage.outputTokens ?? 0,
        cacheRead: usage.inputTokenDetails.cacheReadTokens ?? 0,
        cacheWrite: usage.inputTokenDetails.cacheWriteTokens ?? 0,
        reasoning: usage.outputTokenDetails.reasoningTokens ?? 0,
      },
      response: { id: response.id, model: response.modelId },
      metadata: plainOne(providerMetadata),
    });
    // The SDK answers invalid calls itself; ours answers all calls alike, so only its assistant messages are taken.
    messages.push(...said);
    messages.push(
      toolCalls.length > 0
        ? {
            role: "tool",
            content: toolCalls.map(({ toolCallId, toolName }) => ({
              type: "tool-result" as const,
              toolCallId,
              toolName,
              output: DENIED(toolName),
            })),
          }
        : { role: "user", content: NUDGE },
    );
  }
  return accounts;
}

function plain(parts: readonly object[]): readonly Json[] {
  return parts.map(plainOne);
}

function plainOne(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null));
}

function statusOf(error: unknown): number | undefined {
  const status = typeof error === "object" && error !== null && "statusCode" in error ? error.statusCode : undefined;
  return typeof status === "number" ? status : undefined;
}

const CASES: readonly (readonly [string, ServerReply])[] = [
  ["text", { text: "Hello, wörld 🧭." }],
  ["reasoning and text", { reasoning: "First, think.", text: "Then speak." }],
  ["one call", { calls: [{ name: "Read", input: { path: "a.ts" } }] }],
  [
    "reasoning, text and parallel calls",
    {
      reasoning: "Both files matter.",
      text: "Reading both.",
      calls: [
        { id: "one", name: "Read", input: { path: "a.ts" } },
        { id: "two", name: "Read", input: { path: "b.ts", deep: [{ n: 1.5, none: null }] } },
        { id: "three", name: "submit_plan", input: { summary: "s" } },
      ],
      usage: { input: 321, output: 99, cacheRead: 17, reasoning: 5 },
    },
  ],
  [
    "reasoning and calls, without a word",
    { reasoning: "Just do it.", calls: [{ name: "Read", input: { path: "a" } }] },
  ],
  ["a call of a tool that was not offered", { calls: [{ id: "one", name: "Edit", input: { path: "a.ts" } }] }],
  ["arguments that are not JSON", { calls: [{ id: "one", name: "Read", rawInput: '{"path":"a' }] }],
  ["no arguments", { calls: [{ id: "one", name: "Read", rawInput: "" }] }],
  ["the output limit", { text: "and then", stop: "length" }],
  ["a content filter", { text: "I will not.", stop: "filter" }],
  ["an unknown reason to stop", { text: "hm", stop: "tired" }],
  ["tokens that are not counted", { text: "hm", usage: "none" }],
];

/** What nobody can parse is no arguments to us, and a text to the SDK. */
function read(account: Account | Failed): Account | Failed {
  if ("failed" in account) return account;
  const calls = account.calls.map((call) => ({
    ...call,
    input: typeof call.input === "string" ? undefined : call.input,
  }));
  const parts = account.parts.map((part) =>
    isJsonObject(part) && typeof part.input === "string" ? { ...part, input: {} } : part,
  );
  return { ...account, calls, parts };
}

describe.each(PROVIDERS)("through %s, streamText and our driver agree", (provider) => {
  test.each(CASES)("on %s, and on the request that follows", async (_case, reply) => {
    const replies: ServerReply[] = [reply, { text: "done" }];
    await using mine = await wire(provider, replies);
    await using sdk = await wire(provider, replies);
    const [our, their] = [await ours(mine.model, 2), await theirs(sdk.model, 2)];
    expect(our).toEqual(their.map(read));
    expect(our.every((account) => !("failed" in account))).toBe(true);
    // The gateway hears that no raw chunks are wanted; not to ask for them says the same.
    const bodies = (requests: readonly { readonly body: JsonObject }[]): Json[] =>
      requests.map(({ body: { includeRawChunks: _none, ...body } }) => body);
    expect(bodies(mine.server.requests)).toEqual(bodies(sdk.server.requests));
    expect(mine.server.requests).toHaveLength(2);
  });

  const half: ServerReply = { text: "one  two  three", calls: [{ name: "Read", input: { path: "a" } }] };
  test.each<readonly [string, ServerReply]>([
    ["a key that is refused", { refuse: "key" }],
    ["a rate limit", { refuse: "rate", retryAfterSeconds: 3 }],
    ["an overload", { refuse: "overload" }],
    ["a prompt that is too long", { refuse: "overflow" }],
    ["a stream that is cut", { ...half, cutAfter: "two" }],
    ["a stream that is closed early", { ...half, cutAfter: "two", cutBy: "end" }],
    ["a stream that is not JSON", { ...half, malformedAt: "two" }],
    ["an error in the middle of a stream", { ...half, fail: "overload" }],
    ["an error before the first word", { fail: "request" }],
  ])("that there is no turn after %s", async (_case, reply) => {
    await using mine = await wire(provider, [reply]);
    await using sdk = await wire(provider, [reply]);
    const [[our], [their]] = [await ours(mine.model, 1), await theirs(sdk.model, 1)];
    expect(our).toMatchObject({ failed: true });
    // Behind the gateway an answer without its end is a whole one to the SDK, and never to us.
    if (provider !== "gateway" || reply.cutBy !== "end") expect(their).toMatchObject({ failed: true });
    // We stop at the first fault, the SDK reads on.
    expect(their?.heard.slice(0, our?.heard.length)).toEqual(our?.heard);
    if (reply.refuse !== undefined && their !== undefined && "status" in their && their.status !== undefined)
      expect(our).toMatchObject({ status: their.status });
  });
});
