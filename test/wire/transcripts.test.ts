import { createServer, type IncomingMessage } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { done, field, isJsonObject, type Json, type JsonObject, pipeline, stage, to } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { eventually, session, tool, twoHosts } from "../support/run-kit.ts";

// What a provider gave has to come back to it whole: in the next request of a run, and after a resume from the journal alone.

/** What one provider streams for a first turn that thinks, speaks and calls twice, and for a last one that finishes. */
interface Dialect {
  readonly model: string;
  readonly variables: (url: string) => Readonly<Record<string, string>>;
  readonly first: readonly Json[];
  readonly last: readonly Json[];
  /** How events are written; `data: …` lines when omitted. */
  readonly named?: boolean;
  /** What of the first turn has to stand in the next request. */
  readonly comesBack: readonly JsonObject[];
  readonly kept: JsonObject;
}

const A = { path: "a" };
const B = { path: "b" };
const FINISH = { summary: "ok" };
const key = (name: string, address: string) => (url: string) => ({ [`${name}_API_KEY`]: "k-123", [address]: url });

const delta = (value: Json, more: JsonObject = {}): Json => ({
  id: "c-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta: value, finish_reason: null }],
  ...more,
});
const chatCall = (index: number, id: string, name: string, input: JsonObject): Json =>
  delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: JSON.stringify(input) } }] });
const chatEnd: readonly Json[] = [
  {
    id: "c-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }],
  },
  {
    id: "c-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [],
    usage: {
      prompt_tokens: 50,
      completion_tokens: 9,
      total_tokens: 59,
      prompt_tokens_details: { cached_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 4 },
    },
  },
];
const chatCalls = (reasoning: readonly Json[]): readonly Json[] => [
  ...reasoning,
  delta({ content: "I look." }),
  chatCall(0, "call_a", "Look", A),
  chatCall(1, "call_b", "Look", B),
  ...chatEnd,
];
const chatLast = [chatCall(0, "call_f", "finish", FINISH), ...chatEnd];
const chatToolCalls = [
  { id: "call_a", type: "function", function: { name: "Look", arguments: JSON.stringify(A) } },
  { id: "call_b", type: "function", function: { name: "Look", arguments: JSON.stringify(B) } },
];
const chatKept = {
  finishReason: "tool-calls",
  rawFinishReason: "tool_calls",
  usage: { inputTokens: 50, outputTokens: 9, cacheReadTokens: 40, reasoningTokens: 4, known: true },
};

const responsesEnd = (...output: readonly Json[]): Json => ({
  type: "response.completed",
  response: {
    id: "resp_1",
    output,
    usage: {
      input_tokens: 50,
      output_tokens: 9,
      input_tokens_details: { cached_tokens: 40 },
      output_tokens_details: { reasoning_tokens: 4 },
    },
  },
});
const created: Json = { type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } };
const item = (output_index: number, value: JsonObject, start: JsonObject = value): readonly Json[] => [
  { type: "response.output_item.added", output_index, item: start },
  { type: "response.output_item.done", output_index, item: value },
];
const responsesCall = (index: number, id: string, name: string, input: JsonObject): readonly Json[] =>
  item(index, {
    type: "function_call",
    id: `fc_${id}`,
    call_id: `call_${id}`,
    name,
    arguments: JSON.stringify(input),
    status: "completed",
  });
const thought = (part: number, text: string): readonly Json[] => [
  {
    type: "response.reasoning_summary_part.added",
    item_id: "rs_1",
    output_index: 0,
    summary_index: part,
    part: { type: "summary_text", text: "" },
  },
  { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, summary_index: part, delta: text },
  {
    type: "response.reasoning_summary_part.done",
    item_id: "rs_1",
    output_index: 0,
    summary_index: part,
    part: { type: "summary_text", text },
  },
];
const message = { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] };

const gatewayUsage = {
  inputTokens: { total: 50, noCache: 10, cacheRead: 40, cacheWrite: 0 },
  outputTokens: { total: 9, text: 5, reasoning: 4 },
};
const gatewayCall = (id: string, toolName: string, input: JsonObject): Json => ({
  type: "tool-call",
  toolCallId: id,
  toolName,
  input: JSON.stringify(input),
  providerMetadata: { openai: { itemId: `fc_${id}` } },
});
const gatewayEnd: Json = {
  type: "finish",
  finishReason: { unified: "tool-calls", raw: "tool_use" },
  usage: gatewayUsage,
  providerMetadata: { gateway: { generationId: "gen_1" } },
};

const googleChunk = (...parts: readonly Json[]): Json => ({
  candidates: [{ index: 0, content: { role: "model", parts } }],
});
const googleEnd: Json = {
  candidates: [{ index: 0, content: { role: "model", parts: [] }, finishReason: "STOP" }],
  usageMetadata: {
    promptTokenCount: 50,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 4,
    cachedContentTokenCount: 40,
    totalTokenCount: 59,
  },
};

const block = (index: number, content_block: Json, ...deltas: readonly Json[]): readonly Json[] => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((one) => ({ type: "content_block_delta", index, delta: one })),
  { type: "content_block_stop", index },
];
const toolUse = (index: number, id: string, name: string, input: JsonObject): readonly Json[] =>
  block(
    index,
    { type: "tool_use", id, name, input: {} },
    { type: "input_json_delta", partial_json: JSON.stringify(input) },
  );
const anthropicStart: Json = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 10, cache_read_input_tokens: 40, cache_creation_input_tokens: 0, output_tokens: 1 },
  },
};
const anthropicEnd: readonly Json[] = [
  { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
];

const DIALECTS: readonly Dialect[] = [
  {
    model: "openai/gpt-6-astra",
    variables: key("OPENAI", "OPENAI_BASE_URL"),
    named: true,
    first: [
      created,
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "early" },
      },
      ...thought(0, "First thought."),
      ...thought(1, "Second thought."),
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "whole-reasoning" },
      },
      { type: "response.output_item.added", output_index: 1, item: message },
      { type: "response.output_text.delta", item_id: "msg_1", output_index: 1, content_index: 0, delta: "I look." },
      { type: "response.output_item.done", output_index: 1, item: { ...message, status: "completed" } },
      ...responsesCall(2, "a", "Look", A),
      ...responsesCall(3, "b", "Look", B),
      responsesEnd(),
    ],
    last: [created, ...responsesCall(0, "f", "finish", FINISH), responsesEnd()],
    comesBack: [
      {
        type: "reasoning",
        id: "rs_1",
        encrypted_content: "whole-reasoning",
        summary: [
          { type: "summary_text", text: "First thought." },
          { type: "summary_text", text: "Second thought." },
        ],
      },
      { role: "assistant", content: "I look." },
      { type: "function_call", call_id: "call_a", name: "Look", arguments: JSON.stringify(A) },
      { type: "function_call", call_id: "call_b", name: "Look", arguments: JSON.stringify(B) },
      { type: "function_call_output", call_id: "call_a", output: "saw a" },
      { type: "function_call_output", call_id: "call_b", output: "saw b" },
    ],
    kept: {
      finishReason: "tool-calls",
      usage: { inputTokens: 50, outputTokens: 9, cacheReadTokens: 40, reasoningTokens: 4, known: true },
      response: { id: "resp_1", model: "m" },
      providerMetadata: { openai: { responseId: "resp_1" } },
    },
  },
  {
    model: "openai-chat/gpt-4.1",
    variables: key("OPENAI", "OPENAI_BASE_URL"),
    first: chatCalls([]),
    last: chatLast,
    comesBack: [
      { role: "assistant", content: "I look.", tool_calls: chatToolCalls },
      { role: "tool", tool_call_id: "call_a", content: "saw a" },
      { role: "tool", tool_call_id: "call_b", content: "saw b" },
    ],
    kept: { finishReason: "tool-calls", rawFinishReason: "tool_calls", usage: chatKept.usage },
  },
  {
    model: "openai-compatible/m",
    variables: key("OPENAI_COMPATIBLE", "OPENAI_COMPATIBLE_BASE_URL"),
    first: chatCalls([delta({ reasoning_content: "I think" }), delta({ reasoning_content: " first." })]),
    last: chatLast,
    comesBack: [
      { role: "assistant", content: "I look.", reasoning_content: "I think first.", tool_calls: chatToolCalls },
    ],
    kept: chatKept,
  },
  {
    model: "ollama/m:8b",
    variables: key("OLLAMA", "OLLAMA_HOST"),
    first: chatCalls([delta({ reasoning: "I think" }), delta({ reasoning: " first." })]),
    last: chatLast,
    comesBack: [{ role: "assistant", content: "I look.", reasoning: "I think first.", tool_calls: chatToolCalls }],
    kept: chatKept,
  },
  {
    model: "google/gemini-4-argon",
    variables: key("GOOGLE_GENERATIVE_AI", "GOOGLE_GENERATIVE_AI_BASE_URL"),
    first: [
      googleChunk({ text: "I think", thought: true }),
      googleChunk({ text: " first.", thought: true }),
      googleChunk({ text: "I look." }),
      googleChunk({ text: "", thoughtSignature: "sig-text" }),
      googleChunk(
        { functionCall: { name: "Look", args: A }, thoughtSignature: "sig-call" },
        { functionCall: { name: "Look", args: B } },
      ),
      googleEnd,
    ],
    last: [googleChunk({ functionCall: { name: "finish", args: FINISH } }), googleEnd],
    comesBack: [
      { text: "I think first.", thought: true },
      { text: "I look.", thoughtSignature: "sig-text" },
      { functionCall: { name: "Look", args: A }, thoughtSignature: "sig-call" },
      { functionCall: { name: "Look", args: B } },
    ],
    kept: {
      finishReason: "tool-calls",
      rawFinishReason: "STOP",
      usage: { inputTokens: 50, outputTokens: 9, cacheReadTokens: 40, reasoningTokens: 4, known: true },
    },
  },
  {
    model: "gateway/openai/gpt-6-astra",
    variables: key("AI_GATEWAY", "AI_GATEWAY_BASE_URL"),
    first: [
      { type: "stream-start", warnings: [] },
      { type: "response-metadata", id: "resp_1", modelId: "m", timestamp: "2026-01-01T00:00:00.000Z" },
      {
        type: "reasoning-start",
        id: "rs_1:0",
        providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: null } },
      },
      { type: "reasoning-delta", id: "rs_1:0", delta: "I think first." },
      {
        type: "reasoning-end",
        id: "rs_1:0",
        providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: "whole" } },
      },
      { type: "text-start", id: "msg_1", providerMetadata: { openai: { itemId: "msg_1" } } },
      { type: "text-delta", id: "msg_1", delta: "I look." },
      { type: "text-end", id: "msg_1", providerMetadata: { openai: { itemId: "msg_1", phase: "commentary" } } },
      gatewayCall("a", "Look", A),
      gatewayCall("b", "Look", B),
      gatewayEnd,
    ],
    last: [gatewayCall("f", "finish", FINISH), gatewayEnd],
    comesBack: [
      {
        type: "reasoning",
        text: "I think first.",
        providerOptions: { openai: { itemId: "rs_1", reasoningEncryptedContent: "whole" } },
      },
      { type: "text", text: "I look.", providerOptions: { openai: { itemId: "msg_1", phase: "commentary" } } },
      {
        type: "tool-call",
        toolCallId: "a",
        toolName: "Look",
        input: A,
        providerOptions: { openai: { itemId: "fc_a" } },
      },
      { type: "tool-result", toolCallId: "b", toolName: "Look", output: { type: "text", value: "saw b" } },
    ],
    kept: {
      finishReason: "tool-calls",
      rawFinishReason: "tool_use",
      usage: { inputTokens: 50, outputTokens: 9, cacheReadTokens: 40, reasoningTokens: 4, known: true },
      providerMetadata: { gateway: { generationId: "gen_1" } },
    },
  },
  {
    model: "anthropic/claude-sonnet-5-5",
    variables: key("ANTHROPIC", "ANTHROPIC_BASE_URL"),
    named: true,
    first: [
      anthropicStart,
      ...block(
        0,
        { type: "thinking", thinking: "" },
        { type: "thinking_delta", thinking: "I think first." },
        { type: "signature_delta", signature: "sig-thought" },
      ),
      ...block(1, { type: "redacted_thinking", data: "hidden-thought" }),
      ...block(2, { type: "text", text: "" }, { type: "text_delta", text: "I look." }),
      ...toolUse(3, "toolu_a", "Look", A),
      ...toolUse(4, "toolu_b", "Look", B),
      ...anthropicEnd,
    ],
    last: [anthropicStart, ...toolUse(0, "toolu_f", "finish", FINISH), ...anthropicEnd],
    comesBack: [
      { type: "thinking", thinking: "I think first.", signature: "sig-thought" },
      { type: "redacted_thinking", data: "hidden-thought" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_a", name: "Look", input: A },
      { type: "tool_result", tool_use_id: "toolu_b", content: "saw b" },
    ],
    kept: {
      finishReason: "tool-calls",
      rawFinishReason: "tool_use",
      usage: { inputTokens: 50, outputTokens: 9, cacheReadTokens: 40, known: true },
    },
  },
];

/** Streams the first turn to a request without a result in it, the last turn to others; these can be held back. */
async function startServer({ first, last, named = false }: Dialect) {
  const bodies: JsonObject[] = [];
  const gate = { open: true, waiting: [] as (() => void)[] };
  const write = (event: Json): string => {
    const type = field(event, "type");
    return `${named && typeof type === "string" ? `event: ${type}\n` : ""}data: ${JSON.stringify(event)}\n\n`;
  };
  const server = createServer((request, response) => {
    void bodyOf(request).then(async (body) => {
      bodies.push(body);
      const isLast = JSON.stringify(body).includes("saw a");
      if (isLast && !gate.open) await new Promise<void>((resolve) => gate.waiting.push(resolve));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end((isLast ? last : first).map(write).join(""));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { url: `http://127.0.0.1:${address.port}`, bodies, gate };
}

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return z.record(z.string(), z.json()).parse(JSON.parse(text));
}

/** Every value that stands anywhere in another. */
function valuesIn(value: Json): readonly Json[] {
  if (typeof value !== "object" || value === null) return [value];
  return [value, ...Object.values(value).flatMap((inner) => valuesIn(inner))];
}

function holds(whole: Json, part: JsonObject): boolean {
  return Object.entries(part).every(([name, value]) => {
    const there = field(whole, name);
    // A provider's package may name a call that came without an id.
    return name === "functionCall" && there !== undefined && isJsonObject(value)
      ? holds(there, value)
      : isDeepStrictEqual(there, value);
  });
}

const reader = tool("Look", {
  effect: "read",
  execute: async (given) => ({ ok: true, output: `saw ${String(field(given, "path"))}` }),
});
const pipe = pipeline({
  id: "one",
  input: z.object({ task: z.string() }),
  stages: {
    one: stage({
      prompt: "You look.",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: z.object({ summary: z.string() }),
      turnCap: 4,
    }),
  },
  initial: "one",
  next: { one: ({ output }) => done(output) },
});
const task = { task: "Look around." };

describe.each(DIALECTS)("$model", (dialect) => {
  test("gets back what it thought, said and called, and what came of it", async () => {
    const server = await startServer(dialect);
    const live = session({ model: dialect.model, env: dialect.variables(server.url), tools: [reader] });
    expect(await live.run(pipe, task)).toMatchObject({ status: "completed", output: FINISH });
    expect(server.bodies).toHaveLength(2);
    const sent = valuesIn(server.bodies[1] ?? {});
    expect(dialect.comesBack.filter((value) => !sent.some((other) => holds(other, value)))).toEqual([]);
  });

  test("after a resume in another process gets the very same request, from the journal alone", async () => {
    const server = await startServer(dialect);
    const { clock, first, second } = twoHosts();
    const common = { model: dialect.model, env: dialect.variables(server.url), tools: [reader], clock };
    server.gate.open = false;
    const handle = session({ ...common, host: first }).start(pipe, task);
    await eventually(() => server.bodies.length === 2);
    await handle.suspend();
    server.gate.open = true;
    const result = await session({ ...common, host: second }).resume(pipe, handle.runId);
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    expect(server.bodies).toHaveLength(3);
    expect(server.bodies[2]).toEqual(server.bodies[1]);
    for (const leave of server.gate.waiting) leave();
  });

  test("has its usage with cached tokens, its word for how it finished and its notes in the record", async () => {
    const server = await startServer(dialect);
    const live = session({ model: dialect.model, env: dialect.variables(server.url), tools: [reader] });
    const handle = live.start(pipe, task);
    await handle;
    const [journal] = await live.host.journal(handle.runId);
    const record = journal?.records.find(({ stepId, phase }) => stepId.endsWith("/turn/1/model") && phase === "done");
    expect(JSON.parse(record?.value ?? "{}")).toMatchObject({ reply: dialect.kept });
  });
});

test("a secret that a provider repeats beside a call is in no record, and nothing else of the call is lost", async () => {
  const secret = "hunter2-hunter2-77";
  const wrapped = {
    tool_uses: [A, B].map((input) => ({ recipient_name: "functions.Look", parameters: { ...input, note: secret } })),
  };
  const dialect: Dialect = {
    model: "openai/gpt-6-astra",
    variables: key("OPENAI", "OPENAI_BASE_URL"),
    named: true,
    first: [created, ...responsesCall(0, "p", "parallel", wrapped), responsesEnd()],
    last: [created, ...responsesCall(0, "f", "finish", FINISH), responsesEnd()],
    comesBack: [],
    kept: {},
  };
  const server = await startServer(dialect);
  const env = { ...dialect.variables(server.url), SOME_PASSWORD: secret };
  const live = session({ model: dialect.model, env, secrets: ["SOME_PASSWORD"], tools: [reader] });
  const handle = live.start(pipe, task);
  expect(await handle).toMatchObject({ status: "completed" });
  const journal = JSON.stringify(await live.host.journal(handle.runId));
  expect(journal).not.toContain(secret);
  expect(journal).toContain("[redacted:SOME_PASSWORD]");
  const outputs = [
    { type: "function_call_output", call_id: "call_p_0", output: "saw a" },
    { type: "function_call_output", call_id: "call_p_1", output: "saw b" },
  ];
  const sent = valuesIn(server.bodies[1] ?? {});
  expect(outputs.filter((value) => !sent.some((other) => holds(other, value)))).toEqual([]);
});

test("each stage asks its own model, with its own temperature and maximum of output tokens", async () => {
  const google = DIALECTS.find(({ model }) => model.startsWith("google/"));
  const anthropic = DIALECTS.find(({ model }) => model.startsWith("anthropic/"));
  if (google === undefined || anthropic === undefined) throw new Error("both are above");
  const [one, two] = [await startServer(google), await startServer(anthropic)];
  const common = { prompt: "You look.", allowedTools: ["Look"], completionTool: "finish", turnCap: 4 };
  const completionSchema = z.object({ summary: z.string() });
  const first = stage({ ...common, completionSchema, model: google.model, temperature: 0.25, maxOutputTokens: 700 });
  const model = "anthropic/claude-sonnet-4-6";
  const second = stage({ ...common, completionSchema, model, temperature: 0.5, maxOutputTokens: 800 });
  const pair = pipeline({
    id: "pair",
    input: z.object({ task: z.string() }),
    stages: { one: first, two: second },
    initial: "one",
    next: { one: () => to("two"), two: ({ output }) => done(output) },
  });
  const env = { ...google.variables(one.url), ...anthropic.variables(two.url) };
  expect(
    await session({ model: "openai/nobody", env: { ...env, OPENAI_API_KEY: "k" }, tools: [reader] }).run(pair, task),
  ).toMatchObject({ status: "completed" });
  expect(one.bodies).toHaveLength(2);
  for (const body of one.bodies) expect(body.generationConfig).toEqual({ temperature: 0.25, maxOutputTokens: 700 });
  expect(two.bodies).toHaveLength(2);
  for (const body of two.bodies)
    expect(body).toMatchObject({ model: "claude-sonnet-4-6", temperature: 0.5, max_tokens: 800 });
});
