import { getEventListeners } from "node:events";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { createSecretFilter } from "@sluice/core/runtime";
import { afterEach, describe, expect, test, vi } from "vitest";
import { callModel, type ModelRequest } from "../../packages/stages/src/agent/model-call.ts";
import type { ModelReply, ModelToolCall } from "../../packages/stages/src/models/reply/reply.ts";
import { PROVIDERS, providerOf, TEST_KEY, TOOLS, type WiredProvider, wire } from "../support/providers.ts";
import type { ServerReply } from "../support/sse-server.ts";
import { wireMessage } from "../support/wire-request.ts";

const start: LanguageModelV4Prompt = [
  { role: "system", content: "You plan." },
  { role: "user", content: [{ type: "text", text: "refactor auth" }] },
];

function call(to: WiredProvider, more: Partial<ModelRequest> = {}): Promise<ModelReply> {
  return callModel({
    model: to.model,
    prompt: start,
    tools: TOOLS,
    secrets: createSecretFilter(new Map([[TEST_KEY, "KEY"]])),
    maxOutputTokens: 1000,
    signal: new AbortController().signal,
    ...more,
  });
}

/** The transcript one turn later: what the model said and one result for each of its calls. */
function after(prompt: LanguageModelV4Prompt, reply: ModelReply): LanguageModelV4Prompt {
  if (!reply.ok) throw new Error(`${reply.error.code}: ${reply.error.message}`);
  // What a restart would have left of the reply.
  const content: typeof reply.content = JSON.parse(JSON.stringify(reply.content));
  const result = ({ id, tool, wireName, input }: ModelToolCall) => ({
    type: "tool-result" as const,
    toolCallId: id,
    toolName: wireName ?? tool,
    output:
      input === undefined
        ? { type: "error-json" as const, value: { code: "invalid_tool_input" } }
        : { type: "text" as const, value: "ok" },
  });
  return [
    ...prompt,
    ...(content.length > 0 ? [{ role: "assistant" as const, content }] : []),
    reply.calls.length > 0
      ? { role: "tool" as const, content: reply.calls.map(result) }
      : { role: "user" as const, content: [{ type: "text" as const, text: "Go on." }] },
  ];
}

describe.each(PROVIDERS)("a call through %s", (provider) => {
  const { read, countsCached, showsReasoning, wrongKey, ...facts } = providerOf(provider);

  test("gives text, reasoning, parallel calls, usage and the reason it ended", async () => {
    await using to = await wire(provider, [
      {
        reasoning: "Look before you leap.",
        text: "I shall read two files. ✓ 🧭",
        calls: [
          { name: "Read", input: { path: "a.ts" } },
          { name: "Read", input: { path: "b/ü.ts" } },
        ],
        usage: { input: 120, output: 45, cacheRead: 30, reasoning: 12 },
      },
    ]);
    const heard: string[] = [];
    const reply = await call(to, { onText: (delta, kind) => heard.push(`${kind}|${delta}`) });
    expect(reply).toMatchObject({
      ok: true,
      text: "I shall read two files. ✓ 🧭",
      finishReason: "tool-calls",
      calls: [
        { index: 0, tool: "Read", input: { path: "a.ts" }, rawInput: '{"path":"a.ts"}' },
        { index: 1, tool: "Read", input: { path: "b/ü.ts" } },
      ],
      usage: {
        // Anthropic counts cached tokens beside the others, OpenAI among them.
        inputTokens: provider === "anthropic" ? 150 : 120,
        outputTokens: 45,
        cacheReadTokens: countsCached ? 30 : 0,
        reasoningTokens: countsCached ? 12 : 0,
        known: true,
      },
      warnings: [],
    });
    expect(heard.filter((each) => each.startsWith("text|")).length).toBeGreaterThan(1);
    const thoughts = heard.filter((each) => each.startsWith("reasoning|"));
    expect(thoughts.map((each) => each.slice("reasoning|".length)).join("")).toBe(
      showsReasoning ? "Look before you leap." : "",
    );
  });

  test("gives a transcript the service takes back, through every kind of turn", async () => {
    await using to = await wire(provider, [
      {
        reasoning: "Hm.",
        text: "Reading.",
        calls: [
          { id: "same", name: "Read", input: { path: "a" } },
          { id: "same", name: "Read", input: { path: "b" } },
          { name: "no such tool!", input: { x: 1 } },
          { name: "2nd-tool", input: { x: 1 } },
          { name: "Read", rawInput: '{"path":' },
          { name: "Read", rawInput: '["a","list"]' },
          { name: "Read", rawInput: '"text"' },
          { name: "Read", rawInput: '{"__proto__":{"x":1}}' },
          { name: "Read", rawInput: "" },
        ],
      },
      { text: "Only words." },
      { text: "  \n", calls: [{ name: "Read", input: { path: "c" } }] },
      {},
      { reasoning: "Only a thought." },
      { text: "Hm.", afterthought: "And one too many." },
      { calls: [{ id: "same", name: "submit_plan", input: { summary: "done" } }], afterthought: "Was that right?" },
      { text: "still here" },
    ]);
    const replyCount = 8;
    let prompt = start;
    const callIds = new Set<string>();
    const replies: ModelReply[] = [];
    for (let turn = 0; turn < replyCount; turn += 1) {
      const reply = await call(to, { prompt, callIds });
      replies.push(reply);
      prompt = after(prompt, reply);
      if (reply.ok) for (const { id } of reply.calls) callIds.add(id);
    }
    expect(replies.map((reply) => (reply.ok ? "ok" : reply.error.message))).toEqual(replies.map(() => "ok"));
    expect(callIds.size).toBe(11);
    const [first] = replies;
    expect(first).toMatchObject({
      calls: [
        { input: { path: "a" } },
        { input: { path: "b" } },
        { tool: "no such tool!", wireName: "no_such_tool_", input: { x: 1 } },
        { tool: "2nd-tool", wireName: "_2nd-tool", input: { x: 1 } },
        { inputError: { code: "not_json" }, rawInput: '{"path":' },
        { input: ["a", "list"] },
        { input: "text" },
        { rawInput: '{"__proto__":{"x":1}}' },
        { input: {} },
      ],
    });
    expect(to.server.requests).toHaveLength(replyCount);
  });

  test("sends what it was asked to send", async () => {
    await using to = await wire(provider, [{ text: "ok" }, { text: "ok" }]);
    const [, submit] = TOOLS;
    if (submit === undefined) throw new Error("no tool");
    await call(to, {
      tools: [submit],
      toolChoice: { type: "tool", toolName: "submit_plan" },
      maxOutputTokens: 321,
      temperature: 0.5,
    });
    await call(to, { tools: [], toolChoice: { type: "required" } });
    const [first, second] = to.server.requests;
    expect(read(first?.body ?? {})).toEqual({
      system: "You plan.",
      messages: [wireMessage("user", { text: "refactor auth" })],
      tools: ["submit_plan"],
      forcedTool: "submit_plan",
      maxOutputTokens: 321,
      ...(facts.temperature ? { temperature: 0.5 } : {}),
    });
    expect(read(second?.body ?? {})).toMatchObject({ tools: [] });
    expect(read(second?.body ?? {}).forcedTool).toBeUndefined();
    expect(first?.headers[facts.keyHeader]).toContain(TEST_KEY);
  });

  const refusals: readonly (readonly [string, ServerReply, object])[] = [
    [
      "too many requests, with a time to wait",
      { refuse: "rate", retryAfterSeconds: 3 },
      { kind: "transient", code: "rate_limited", status: 429, retryAfterMs: 3_000 },
    ],
    ["overload", { refuse: "overload" }, { kind: "transient", code: "overloaded" }],
    [
      "overload, with a time to wait in milliseconds",
      { refuse: "overload", headers: { "retry-after-ms": "40" } },
      { kind: "transient", code: "overloaded", retryAfterMs: 40 },
    ],
    [
      "a proxy's page",
      { status: 503, rawBody: "<html><body>Bad day</body></html>" },
      { kind: "transient", status: 503 },
    ],
    ["a wrong key", { refuse: "key" }, { kind: "permanent", code: "unauthorized", status: wrongKey }],
    [
      "a key that is repeated in the refusal",
      { status: 403, error: { message: `The key ${TEST_KEY} may not use this model` } },
      { kind: "permanent", code: "forbidden", status: 403 },
    ],
    ["a prompt that is too long", { refuse: "overflow" }, { kind: "context_overflow", code: "context_overflow" }],
    ["a bad request", { refuse: "request" }, { kind: "permanent", code: "bad_request", status: 400 }],
  ];
  test.each(refusals)("says what a refusal means: %s", async (_what, reply, error) => {
    await using to = await wire(provider, [reply]);
    const answer = await call(to);
    expect(answer).toMatchObject({ ok: false, error });
    if (!("retryAfterMs" in error)) expect(answer).not.toHaveProperty("error.retryAfterMs");
    expect(JSON.stringify(answer)).not.toContain(TEST_KEY);
    expect(to.server.requests).toHaveLength(1);
  });

  test("an error in the middle of a stream means what it means before it", async () => {
    const begun = "I was about to";
    await using to = await wire(provider, [
      { text: begun, fail: "overload" },
      { text: begun, fail: "rate" },
      { text: begun, fail: "request" },
      { fail: "request" },
      { fail: "overload" },
    ]);
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient" } });
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient" } });
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "permanent", code: "bad_request" } });
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "permanent", code: "bad_request" } });
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient" } });
  });

  const lines = { text: "one  two  three", calls: [{ name: "Read", input: { path: "a" } }] };
  test.each([
    ["the connection breaks in the text", { ...lines, cutAfter: "two" }],
    ["the connection breaks in the call", { ...lines, cutAfter: '"Read"' }],
    ["the connection breaks in the middle of an event", { ...lines, cutInside: "two" }],
    ["the answer is closed in the text", { ...lines, cutAfter: "two", cutBy: "end" as const }],
    ["the answer is closed in the call", { ...lines, cutAfter: '"Read"', cutBy: "end" as const }],
  ])("a turn is to be repeated when %s", async (_when, reply) => {
    await using to = await wire(provider, [reply, { text: "again" }]);
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "cut_stream", code: "stream_cut" } });
    expect(await call(to)).toMatchObject({ ok: true, text: "again" });
  });

  test("a connection that breaks before the first event is worth another try", async () => {
    await using to = await wire(provider, [{ ...lines, cutAfterEvents: 0 }, { text: "again" }]);
    const reply = await call(to);
    expect(["transient", "cut_stream"]).toContain(reply.ok ? "ok" : reply.error.kind);
    expect(await call(to)).toMatchObject({ ok: true, text: "again" });
  });

  test("an event that is not JSON is transient", async () => {
    await using to = await wire(provider, [{ ...lines, malformedAt: "two" }]);
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient", code: "invalid_response" } });
  });

  test("a server that is not there is transient", async () => {
    const to = await wire(provider, []);
    await to.server.close();
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient", code: "network" } });
  });

  test("the output limit inside a call marks it", async () => {
    await using to = await wire(provider, [{ calls: [{ name: "Read", rawInput: '{"path":"a' }], stop: "length" }]);
    expect(await call(to)).toMatchObject({
      ok: true,
      finishReason: "length",
      calls: [{ inputError: { code: "truncated" }, rawInput: '{"path":"a' }],
    });
  });

  test("a server that does not count tokens is no failure", async () => {
    await using to = await wire(provider, [{ text: "ok", usage: "none" }]);
    expect(await call(to)).toMatchObject({ ok: true, usage: { known: provider === "anthropic" } });
  });

  test.each([
    ["before the status line", undefined],
    ["in the middle of the stream", "one"],
  ])("an abort %s returns, and the server sees the client go", async (_when, holdAfter) => {
    const never = new Promise(() => undefined);
    await using to = await wire(provider, [
      { ...lines, hold: never, ...(holdAfter === undefined ? {} : { holdAfter }) },
    ]);
    const controller = new AbortController();
    const reply = call(to, { signal: controller.signal, onText: () => controller.abort() });
    await expect.poll(() => to.server.requests).toHaveLength(1);
    if (holdAfter === undefined) controller.abort();
    expect(await reply).toMatchObject({ ok: false, error: { kind: "aborted" } });
    await to.server.requests[0]?.disconnected;
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });
});

describe("warnings of a provider", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test("are part of the reply and reach neither stderr nor the console", async () => {
    const spies = [
      vi.spyOn(process, "emitWarning"),
      vi.spyOn(process.stderr, "write"),
      ...(["log", "info", "warn", "error"] as const).map((method) => vi.spyOn(console, method)),
    ];
    await using to = await wire("anthropic", [{ text: "ok" }]);
    const reply = await call(to, { temperature: 1.5 });
    expect(reply).toMatchObject({ ok: true, warnings: [expect.stringContaining("temperature")] });
    for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  });
});
