import { getEventListeners } from "node:events";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { afterEach, describe, expect, test, vi } from "vitest";
import { callModel, type ModelRequest } from "../../packages/stages/src/agent/model-call.ts";
import type { ModelReply, ModelToolCall } from "../../packages/stages/src/models/reply.ts";
import { PROVIDERS, TEST_KEY, TOOLS, type WiredProvider, wire } from "../support/providers.ts";

const start: LanguageModelV4Prompt = [
  { role: "system", content: "You plan." },
  { role: "user", content: [{ type: "text", text: "refactor auth" }] },
];

function call(to: WiredProvider, more: Partial<ModelRequest> = {}): Promise<ModelReply> {
  return callModel({
    model: to.model,
    prompt: start,
    tools: TOOLS,
    secrets: [TEST_KEY],
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
        cacheReadTokens: 30,
        reasoningTokens: 12,
        known: true,
      },
      warnings: [],
    });
    expect(heard.filter((each) => each.startsWith("text|")).length).toBeGreaterThan(1);
    expect(heard.filter((each) => each.startsWith("reasoning|")).length).toBeGreaterThan(1);
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
      { calls: [{ id: "same", name: "submit_plan", input: { summary: "done" } }] },
      { text: "still here" },
    ]);
    let prompt = start;
    const callIds = new Set<string>();
    const replies: ModelReply[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      const reply = await call(to, { prompt, callIds });
      replies.push(reply);
      prompt = after(prompt, reply);
      if (reply.ok) for (const { id } of reply.calls) callIds.add(id);
    }
    expect(replies.map((reply) => (reply.ok ? "ok" : reply.error.message))).toEqual([
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
    ]);
    expect(callIds.size).toBe(10);
    const [first] = replies;
    expect(first).toMatchObject({
      calls: [
        { input: { path: "a" } },
        { input: { path: "b" } },
        { tool: "no such tool!", wireName: "no_such_tool_", input: { x: 1 } },
        { inputError: { code: "not_json" }, rawInput: '{"path":' },
        { input: ["a", "list"] },
        { input: "text" },
        { rawInput: '{"__proto__":{"x":1}}' },
        { input: {} },
      ],
    });
    expect(to.server.requests).toHaveLength(6);
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
    expect(first?.body).toMatchObject({ model: "test-model", stream: true, max_tokens: 321, temperature: 0.5 });
    expect(JSON.stringify(first?.body.tools)).toContain('"submit_plan"');
    expect(JSON.stringify(first?.body.tool_choice)).toContain('"submit_plan"');
    expect(second?.body.tools).toBeUndefined();
    expect(second?.body.tool_choice).toBeUndefined();
    expect(first?.headers[provider === "anthropic" ? "x-api-key" : "authorization"]).toContain(TEST_KEY);
  });

  test.each([
    [
      { status: 529, error: { type: "overloaded_error", message: "Overloaded" }, headers: { "retry-after": "3" } },
      "transient",
      "overloaded",
      3000,
    ],
    [{ status: 429, error: { message: "slow" }, headers: { "retry-after-ms": "40" } }, "transient", "rate_limited", 40],
    [{ status: 503, rawBody: "<html><body>Bad day</body></html>" }, "transient", "overloaded", undefined],
    [
      { status: 401, error: { type: "authentication_error", message: `Incorrect API key provided: ${TEST_KEY}` } },
      "permanent",
      "unauthorized",
      undefined,
    ],
    [
      {
        status: 400,
        error: { type: "invalid_request_error", message: "prompt is too long: 214310 tokens > 200000 maximum" },
      },
      "context_overflow",
      "context_overflow",
      undefined,
    ],
    [
      { status: 400, error: { type: "invalid_request_error", message: "temperature: too hot" } },
      "permanent",
      "bad_request",
      undefined,
    ],
  ])("says what a refusal means: %j", async (reply, kind, code, retryAfterMs) => {
    await using to = await wire(provider, [reply]);
    const answer = await call(to);
    expect(answer).toMatchObject({ ok: false, error: { kind, code, status: reply.status } });
    if (answer.ok) return;
    expect(answer.error.retryAfterMs).toBe(retryAfterMs);
    expect(JSON.stringify(answer)).not.toContain(TEST_KEY);
    expect(to.server.requests).toHaveLength(1);
  });

  test("an error in the middle of a stream is transient or not, as the provider says", async () => {
    const overloaded = { type: provider === "anthropic" ? "overloaded_error" : "server_error", message: "Overloaded" };
    await using to = await wire(provider, [
      { text: "I was about to", error: overloaded },
      { error: { type: "invalid_request_error", message: "no" } },
    ]);
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient" } });
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "permanent", code: "bad_request" } });
  });

  const inArguments = provider === "anthropic" ? 9 : 6;
  const lines = { text: "one two three", calls: [{ name: "Read", input: { path: "a" } }] };
  test.each([
    ["the connection breaks in the text", { ...lines, cutAfterEvents: 4 }],
    ["the connection breaks in the arguments", { ...lines, cutAfterEvents: inArguments }],
    ["the connection breaks in the middle of an event", { ...lines, cutAfterBytes: 700 }],
    ["the answer is closed in the text", { ...lines, cutAfterEvents: 4, cutBy: "end" as const }],
    ["the answer is closed in the arguments", { ...lines, cutAfterEvents: inArguments, cutBy: "end" as const }],
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
    await using to = await wire(provider, [{ ...lines, malformedEvent: 4 }]);
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient", code: "invalid_response" } });
  });

  test("a server that is not there is transient", async () => {
    const to = await wire(provider, []);
    await to.server.close();
    expect(await call(to)).toMatchObject({ ok: false, error: { kind: "transient", code: "network" } });
  });

  test("the output limit inside a call marks it", async () => {
    const stop = provider === "anthropic" ? "max_tokens" : "length";
    await using to = await wire(provider, [{ calls: [{ name: "Read", rawInput: '{"path":"a' }], stop }]);
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
    ["in the middle of the stream", 4],
  ])("an abort %s returns, and the server sees the client go", async (_when, holdAtEvent) => {
    const never = new Promise(() => undefined);
    await using to = await wire(provider, [
      { ...lines, hold: never, ...(holdAtEvent === undefined ? {} : { holdAtEvent }) },
    ]);
    const controller = new AbortController();
    const reply = call(to, { signal: controller.signal, onText: () => controller.abort() });
    await vi.waitFor(() => expect(to.server.requests).toHaveLength(1));
    if (holdAtEvent === undefined) controller.abort();
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
