import type { LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Json, JsonObject } from "@sluice/core";
import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { describe, expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import type { ModelReply } from "../../packages/stages/src/models/reply.ts";
import { PROVIDERS, TOOLS, wire } from "../support/providers.ts";
import type { ServerReply } from "../support/sse-server.ts";

// Our driver and the SDK's streamText, on the same bytes: what they say of a turn must agree, and so must the request each
// of them sends for the next one.

const SYSTEM = "You plan.";
const TASK = "refactor auth";
const NUDGE = "Go on.";

/** What both ways tell of one turn. */
interface Account {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
  readonly finishReason: string;
  readonly usage: {
    readonly input: number;
    readonly output: number;
    readonly cached: number;
    readonly reasoning: number;
  };
}

async function ours(model: LanguageModelV4, turns: number): Promise<Account[]> {
  let prompt: LanguageModelV4Prompt = [
    { role: "system", content: SYSTEM },
    { role: "user", content: [{ type: "text", text: TASK }] },
  ];
  const accounts: Account[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const reply: ModelReply = await callModel({
      model,
      prompt,
      tools: TOOLS,
      toolChoice: { type: "auto" },
      maxOutputTokens: 500,
      signal: new AbortController().signal,
    });
    if (!reply.ok) throw new Error(reply.error.message);
    accounts.push({
      text: reply.text,
      reasoning: reply.content.map((part) => (part.type === "reasoning" ? part.text : "")).join(""),
      calls: reply.calls.map(({ tool: name, input }) => ({ tool: name, input })),
      finishReason: reply.finishReason,
      usage: {
        input: reply.usage.inputTokens,
        output: reply.usage.outputTokens,
        cached: reply.usage.cacheReadTokens,
        reasoning: reply.usage.reasoningTokens,
      },
    });
    const results = reply.calls.map(({ id, tool: toolName }) => ({
      type: "tool-result" as const,
      toolCallId: id,
      toolName,
      output: { type: "error-json" as const, value: { code: "tool_call_denied", tool: toolName } },
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

async function theirs(model: LanguageModelV4, turns: number): Promise<Account[]> {
  const tools: ToolSet = Object.fromEntries(
    TOOLS.map(({ name, description, inputSchema }) => [
      name,
      tool({ ...(description === undefined ? {} : { description }), inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
  const messages: ModelMessage[] = [{ role: "user", content: TASK }];
  const accounts: Account[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const result = streamText({
      model,
      instructions: SYSTEM,
      messages,
      tools,
      maxOutputTokens: 500,
      maxRetries: 0,
      onError: () => undefined,
    });
    await result.consumeStream();
    const [text, reasoning, calls, finishReason, usage, response] = await Promise.all([
      result.text,
      result.reasoningText,
      result.toolCalls,
      result.finishReason,
      result.usage,
      result.response,
    ]);
    accounts.push({
      text,
      reasoning: reasoning ?? "",
      calls: calls.map(({ toolName, input }) => ({ tool: toolName, input })),
      finishReason,
      usage: {
        input: usage.inputTokens ?? 0,
        output: usage.outputTokens ?? 0,
        cached: usage.inputTokenDetails.cacheReadTokens ?? 0,
        reasoning: usage.outputTokenDetails.reasoningTokens ?? 0,
      },
    });
    // The SDK answers invalid calls itself; ours answers all calls alike, so only its assistant messages are taken.
    messages.push(...response.messages.filter(({ role }) => role === "assistant"));
    messages.push(
      calls.length > 0
        ? {
            role: "tool",
            content: calls.map(({ toolCallId, toolName }) => ({
              type: "tool-result" as const,
              toolCallId,
              toolName,
              output: { type: "error-json" as const, value: { code: "tool_call_denied", tool: toolName } },
            })),
          }
        : { role: "user", content: NUDGE },
    );
  }
  return accounts;
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
  ["a call of a tool that was not offered", { calls: [{ id: "one", name: "Edit", input: { path: "a.ts" } }] }],
  ["arguments that are not JSON", { calls: [{ id: "one", name: "Read", rawInput: '{"path":"a' }] }],
  ["no arguments", { calls: [{ id: "one", name: "Read", rawInput: "" }] }],
  ["the output limit", { text: "and then", stop: "length" }],
  ["a refusal", { text: "I will not.", stop: "filter" }],
  ["an unknown reason to stop", { text: "hm", stop: "tired" }],
];

function unparsable(calls: Account["calls"]): Account["calls"] {
  return calls.map(({ tool: name, input }) => ({ tool: name, input: typeof input === "string" ? undefined : input }));
}

describe.each(PROVIDERS)("through %s, streamText and our driver agree", (provider) => {
  test.each(CASES)("on %s, and on the request that follows", async (_case, reply) => {
    const replies: ServerReply[] = [reply, { text: "done" }];
    await using mine = await wire(provider, replies);
    await using sdk = await wire(provider, replies);
    const [our, their] = [await ours(mine.model, 2), await theirs(sdk.model, 2)];
    expect(our).toEqual(their.map((account) => ({ ...account, calls: unparsable(account.calls) })));
    // The gateway hears that no raw chunks are wanted; not to ask for them says the same.
    const bodies = (requests: readonly { readonly body: JsonObject }[]): Json[] =>
      requests.map(({ body: { includeRawChunks: _none, ...body } }) => body);
    expect(bodies(mine.server.requests)).toEqual(bodies(sdk.server.requests));
    expect(mine.server.requests).toHaveLength(2);
  });
});
