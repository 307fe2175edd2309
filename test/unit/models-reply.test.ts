import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Json } from "@sluice/core";
import { jsonFault } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { callModel, type ModelRequest } from "../../packages/stages/src/agent/model-call.ts";
import type { ModelReply } from "../../packages/stages/src/models/reply/reply.ts";
import { finish, modelFrom, modelOf, part } from "../support/stream-model.ts";

const TOOLS: LanguageModelV4FunctionTool[] = [{ type: "function", name: "Read", inputSchema: { type: "object" } }];
const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

function call(parts: readonly LanguageModelV4StreamPart[], more: Partial<ModelRequest> = {}): Promise<ModelReply> {
  return callModel({ model: modelOf(parts), prompt, tools: TOOLS, signal: new AbortController().signal, ...more });
}

async function good(parts: readonly LanguageModelV4StreamPart[], more: Partial<ModelRequest> = {}) {
  const reply = await call(parts, more);
  if (!reply.ok) throw new Error(`expected a reply, got ${reply.error.code}: ${reply.error.message}`);
  return reply;
}

async function bad(parts: readonly LanguageModelV4StreamPart[]) {
  const reply = await call(parts);
  if (reply.ok) throw new Error("expected a failure");
  return reply.error;
}

const toolCall = (toolCallId: unknown, input: unknown, more: object = {}): LanguageModelV4StreamPart =>
  part({ type: "tool-call", toolCallId, toolName: "Read", input, ...more });

describe("a whole stream becomes one value", () => {
  test("text, reasoning with its signature and calls keep their order, and the value survives a JSON round trip", async () => {
    const reply = await good([
      part({ type: "stream-start", warnings: [{ type: "unsupported", feature: "seed", details: "ignored" }] }),
      part({ type: "response-metadata", id: "msg_1", modelId: "fake-1-2026", timestamp: new Date(0) }),
      part({ type: "reasoning-start", id: "0" }),
      part({ type: "reasoning-delta", id: "0", delta: "think" }),
      part({ type: "reasoning-delta", id: "0", delta: "", providerMetadata: { fake: { signature: "abc" } } }),
      part({ type: "reasoning-end", id: "0" }),
      part({ type: "text-start", id: "1" }),
      part({ type: "text-delta", id: "1", delta: "Hel" }),
      part({ type: "text-delta", id: "1", delta: "lo" }),
      part({ type: "text-end", id: "1" }),
      toolCall("a", '{"path":"x"}', { providerMetadata: { fake: { thoughtSignature: "t" } } }),
      part({ type: "custom", kind: "fake.note", providerMetadata: { fake: { n: 1, gone: undefined } } }),
      part({ type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } }),
      finish("tool-calls"),
    ]);
    expect(reply).toEqual({
      ok: true,
      content: [
        { type: "reasoning", text: "think", providerOptions: { fake: { signature: "abc" } } },
        { type: "text", text: "Hello" },
        {
          type: "tool-call",
          toolCallId: "a",
          toolName: "Read",
          input: { path: "x" },
          providerOptions: { fake: { thoughtSignature: "t" } },
        },
        { type: "custom", kind: "fake.note", providerOptions: { fake: { n: 1 } } },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AQID" } },
      ],
      calls: [{ index: 0, id: "a", tool: "Read", input: { path: "x" }, rawInput: '{"path":"x"}' }],
      text: "Hello",
      finishReason: "tool-calls",
      rawFinishReason: "tool-calls",
      usage: {
        inputTokens: 7,
        outputTokens: 3,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        known: true,
      },
      warnings: ["unsupported: seed (ignored)"],
      response: { id: "msg_1", model: "fake-1-2026" },
    });
    const journaled: Json = reply;
    expect(jsonFault(journaled)).toBeUndefined();
    expect(JSON.parse(JSON.stringify(journaled))).toEqual(reply);
  });

  test("content fits the prompt of the next call as it stands", async () => {
    const reply = await good([toolCall("a", "{}"), finish("tool-calls")]);
    const next: LanguageModelV4Prompt = [...prompt, { role: "assistant", content: reply.content }];
    expect(next).toHaveLength(2);
  });

  test("the prompt reaches the model by reference", async () => {
    let seen: unknown;
    const model = modelFrom((options) => {
      seen = options.prompt;
      return Promise.resolve(new ReadableStream({ start: (controller) => controller.close() }));
    });
    await callModel({ model, prompt, tools: [], signal: new AbortController().signal });
    expect(seen).toBe(prompt);
  });

  test("onText hears text and reasoning as they come", async () => {
    const heard: string[] = [];
    await good(
      [
        part({ type: "reasoning-delta", id: "0", delta: "hm" }),
        part({ type: "text-delta", id: "0", delta: "a" }),
        part({ type: "text-delta", id: "0", delta: "b" }),
        finish("stop"),
      ],
      { onText: (delta, kind) => heard.push(`${kind}:${delta}`) },
    );
    expect(heard).toEqual(["reasoning:hm", "text:a", "text:b"]);
  });

  test("what onText throws is a fault of the program and is thrown", async () => {
    const onText = (): void => {
      throw new Error("screen gone");
    };
    await expect(call([part({ type: "text-delta", id: "0", delta: "a" }), finish("stop")], { onText })).rejects.toThrow(
      "screen gone",
    );
  });

  test("tokens no one counted are 0 and marked unknown", async () => {
    const none = { total: undefined };
    const reply = await good([finish("stop", { inputTokens: none, outputTokens: none })]);
    expect(reply.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, known: false });
    const absurd = await good([finish("stop", { inputTokens: { total: -5 }, outputTokens: { total: Number.NaN } })]);
    expect(absurd.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, known: false });
  });

  test("an answer that says nothing has no content to append", async () => {
    const reply = await good([
      part({ type: "text-start", id: "0" }),
      part({ type: "text-delta", id: "0", delta: " \n" }),
      part({ type: "text-end", id: "0" }),
      finish("stop"),
    ]);
    expect(reply.content).toEqual([]);
    expect(reply.text).toBe(" \n");
  });
});

describe("calls", () => {
  test("calls with the same id are distinguished by position, in the content too", async () => {
    const reply = await good([
      toolCall("x", '{"n":1}'),
      toolCall("x", '{"n":2}'),
      toolCall("x", '{"n":2}'),
      finish("tool-calls"),
    ]);
    expect(reply.calls.map(({ index, id }) => [index, id])).toEqual([
      [0, "x"],
      [1, "x_c1"],
      [2, "x_c2"],
    ]);
    expect(reply.content.map((each) => (each.type === "tool-call" ? each.toolCallId : ""))).toEqual([
      "x",
      "x_c1",
      "x_c2",
    ]);
  });

  test("an id that an earlier turn used is replaced", async () => {
    const reply = await good([toolCall("call_0", "{}"), finish("tool-calls")], { callIds: new Set(["call_0"]) });
    expect(reply.calls[0]?.id).toBe("call_0_c0");
  });

  test("a made-up id does not collide with one that was sent", async () => {
    const reply = await good([toolCall("x_c1", "{}"), toolCall("x", "{}"), toolCall("x", "{}"), finish("tool-calls")]);
    expect(new Set(reply.calls.map(({ id }) => id)).size).toBe(3);
  });

  test.each([[""], [undefined], [42], ["y".repeat(1000)]])("an unusable id (%j) is replaced", async (id) => {
    const reply = await good([toolCall(id, "{}"), finish("tool-calls")]);
    expect(reply.calls[0]?.id).toBe("call_c0");
  });

  test.each([
    ["not json", "{oops", "not_json"],
    ["a number beyond all bounds", '{"n":1e999}', "not_json"],
    ["more than 10 MiB", `{"a":"${"x".repeat(10 * 1024 * 1024)}"}`, "too_large"],
    ["bottomless nesting", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "too_deep"],
  ])("arguments that are %s are an input error, and the transcript holds {}", async (_what, input, code) => {
    const reply = await good([toolCall("a", input), finish("tool-calls")]);
    expect(reply.calls[0]).not.toHaveProperty("input");
    expect(reply.calls[0]?.inputError?.code).toBe(code);
    expect(reply.content[0]).toMatchObject({ type: "tool-call", input: {} });
    expect(reply.calls[0]?.rawInput).toBe(code === "too_large" ? input.slice(0, 1024) : input);
    expect(jsonFault(reply)).toBeUndefined();
  });

  test.each([["[1]"], ['"text"'], ["5"], ["null"]])(
    "arguments that are JSON but no object (%s) are given as they are and sent back as {}",
    async (input) => {
      const reply = await good([toolCall("a", input), finish("tool-calls")]);
      expect(reply.calls[0]?.input).toEqual(JSON.parse(input));
      expect(reply.content[0]).toMatchObject({ input: {} });
    },
  );

  test.each([[""], ["  "]])("no arguments at all (%j) mean {}", async (input) => {
    expect((await good([toolCall("a", input), finish("tool-calls")])).calls[0]?.input).toEqual({});
  });

  test("a model object that hands over arguments as a value is understood", async () => {
    expect((await good([toolCall("a", { path: "x" }), finish("tool-calls")])).calls[0]?.input).toEqual({ path: "x" });
  });

  test("prototype keys and lone surrogates in arguments are data", async () => {
    const input = '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"half":"\\ud83d"}';
    const reply = await good([toolCall("a", input), finish("tool-calls")]);
    const given = reply.calls[0]?.input;
    expect(JSON.stringify(given)).toBe(input);
    expect(JSON.stringify(JSON.parse(JSON.stringify(reply.content[0])).input)).toBe(input);
    expect(Object.getPrototypeOf({})).not.toHaveProperty("polluted");
    expect(Object.getPrototypeOf(given)).toBe(Object.prototype);
  });

  test("metadata with a prototype key stays data", async () => {
    const metadata: unknown = JSON.parse('{"__proto__":{"polluted":true},"fake":{"a":1}}');
    const reply = await good([
      part({ type: "text-delta", id: "0", delta: "x", providerMetadata: metadata }),
      finish("stop"),
    ]);
    expect(JSON.stringify(reply.content[0])).toContain('"__proto__":{"polluted":true}');
    expect(Object.getPrototypeOf({})).not.toHaveProperty("polluted");
  });

  test("a name that no provider takes back is made harmless in the transcript only", async () => {
    const reply = await good([
      part({ type: "tool-call", toolCallId: "a", toolName: "rm -rf /", input: "{}" }),
      finish("tool-calls"),
    ]);
    expect(reply.calls[0]).toMatchObject({ tool: "rm -rf /", wireName: "rm_-rf__" });
    expect(reply.content[0]).toMatchObject({ toolName: "rm_-rf__" });
    const nameless = await good([part({ type: "tool-call", toolCallId: "a", input: "{}" }), finish("tool-calls")]);
    expect(nameless.calls[0]).toMatchObject({ tool: "", wireName: "unnamed" });
  });

  test("a call in which the output limit was reached is marked, even when its arguments look whole", async () => {
    const reply = await good([toolCall("a", '{"n":1}'), toolCall("b", "{}"), finish("length")]);
    expect(reply.finishReason).toBe("length");
    expect(reply.calls[0]).not.toHaveProperty("inputError");
    expect(reply.calls[1]?.inputError?.code).toBe("truncated");
    expect(reply.calls[1]).not.toHaveProperty("input");
  });

  test("text after a call means that the limit was reached in the text", async () => {
    const reply = await good([
      toolCall("a", "{}"),
      part({ type: "text-delta", id: "0", delta: "and th" }),
      finish("length"),
    ]);
    expect(reply.calls[0]).not.toHaveProperty("inputError");
  });

  test("calls the provider ran itself are kept with their results and never offered to us", async () => {
    const reply = await good([
      toolCall("srv", '{"q":"a"}', { toolName: "web_search", providerExecuted: true }),
      part({ type: "tool-result", toolCallId: "srv", toolName: "web_search", result: "early", preliminary: true }),
      part({ type: "tool-result", toolCallId: "srv", toolName: "web_search", result: { hits: 1 } }),
      part({ type: "tool-result", toolCallId: "srv", toolName: "web_search", result: { code: "x" }, isError: true }),
      toolCall("mine", "{}"),
      finish("tool-calls"),
    ]);
    expect(reply.calls.map(({ id, index }) => [id, index])).toEqual([["mine", 0]]);
    expect(reply.content.slice(0, 3)).toEqual([
      { type: "tool-call", toolCallId: "srv", toolName: "web_search", input: { q: "a" }, providerExecuted: true },
      { type: "tool-result", toolCallId: "srv", toolName: "web_search", output: { type: "json", value: { hits: 1 } } },
      {
        type: "tool-result",
        toolCallId: "srv",
        toolName: "web_search",
        output: { type: "error-json", value: { code: "x" } },
      },
    ]);
  });
});

describe("streams that make no sense", () => {
  test("parts in the wrong order, for unknown ids and of unknown types never throw", async () => {
    const nothing: LanguageModelV4StreamPart[] = JSON.parse("[null, 7, {}]");
    const reply = await good([
      ...nothing,
      part({ type: "text-end", id: "9" }),
      part({ type: "text-delta", id: "0", delta: "no start" }),
      part({ type: "text-start", id: "1" }),
      part({ type: "reasoning-start", id: "1" }),
      part({ type: "text-delta", id: "1", delta: "A" }),
      part({ type: "reasoning-delta", id: "1", delta: "B" }),
      part({ type: "text-delta", id: "1", delta: "C" }),
      part({ type: "text-delta", id: "1" }),
      part({ type: "text-start", id: "1" }),
      part({ type: "text-delta", id: "1", delta: "D" }),
      part({ type: "tool-input-delta", id: "ghost", delta: "{" }),
      part({ type: "tool-input-end", id: "ghost" }),
      part({ type: "tool-approval-request", approvalId: "p", toolCallId: "q" }),
      part({ type: "custom", kind: "nodot" }),
      part({ type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://example.com/a.png") } }),
      part({ type: "file" }),
      part({ type: "stream-start" }),
      part({ type: "hologram" }),
      part({ type: "hologram" }),
      part({ type: "source", sourceType: "url", id: "s", url: "https://example.com" }),
      finish("stop"),
    ]);
    expect(reply.content).toEqual([
      { type: "text", text: "no start" },
      { type: "text", text: "AC" },
      { type: "reasoning", text: "B" },
      { type: "text", text: "D" },
    ]);
    expect(reply.warnings).toEqual([
      'ignored in the stream: "no type" (3)',
      'ignored in the stream: "tool-approval-request" (1)',
      'ignored in the stream: "custom" (1)',
      'ignored in the stream: "file" (2)',
      'ignored in the stream: "hologram" (2)',
    ]);
  });

  test("a thousand unknown types and endless warnings are cut to twenty", async () => {
    const strange = Array.from({ length: 1000 }, (_, n) => part({ type: `t${n}${"x".repeat(500)}` }));
    const warnings = Array.from({ length: 1000 }, () => ({ type: "other", message: "w".repeat(10_000) }));
    const reply = await good([part({ type: "stream-start", warnings }), ...strange, finish("stop")]);
    expect(reply.warnings.length).toBe(20);
    expect(Math.max(...reply.warnings.map((warning) => warning.length))).toBeLessThanOrEqual(300);
  });

  test("metadata that is not JSON is left out or made JSON", async () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const reply = await good([
      part({
        type: "reasoning-delta",
        id: "0",
        delta: "b",
        providerMetadata: { fake: { big: 1n, bytes: new Uint8Array([255]) }, odd: 5 },
      }),
      part({ type: "text-delta", id: "0", delta: "a", providerMetadata: { fake: loop } }),
      finish("stop"),
    ]);
    expect(reply.content).toEqual([
      { type: "reasoning", text: "b", providerOptions: { fake: { big: "1", bytes: "/w==" } } },
      { type: "text", text: "a" },
    ]);
  });

  test("an answer without end is refused", async () => {
    let sent = 0;
    let cancelled = false;
    const chunk = "x".repeat(1024 * 1024);
    const model = modelFrom(() =>
      Promise.resolve(
        new ReadableStream({
          pull: (controller) => {
            sent += 1;
            controller.enqueue(part({ type: "text-delta", id: "0", delta: chunk }));
          },
          cancel: () => {
            cancelled = true;
          },
        }),
      ),
    );
    const reply = await callModel({ model, prompt, tools: [], signal: new AbortController().signal });
    expect(reply).toMatchObject({ ok: false, error: { kind: "permanent", code: "reply_too_large" } });
    expect(sent).toBeLessThan(40);
    expect(cancelled).toBe(true);
  });

  test("a finish reason no one knows is other", async () => {
    expect((await good([part({ type: "text-delta", id: "0", delta: "a" }), finish("daydreaming")])).finishReason).toBe(
      "other",
    );
  });
});

describe("failures are values", () => {
  test("a stream that ends without a finish part is cut", async () => {
    expect(await bad([part({ type: "text-delta", id: "0", delta: "a" })])).toMatchObject({
      kind: "cut_stream",
      code: "stream_cut",
    });
    expect(await bad([])).toMatchObject({ kind: "cut_stream" });
    expect(await bad([toolCall("a", "{}"), finish("interrupted")])).toMatchObject({ kind: "cut_stream" });
  });

  test("a finish that is an error is one", async () => {
    expect(await bad([finish("error")])).toMatchObject({ kind: "transient", code: "provider_error" });
  });

  test("a connection that breaks in the middle is a cut stream, and after the finish part changes nothing", async () => {
    const breaking = (parts: readonly LanguageModelV4StreamPart[]) =>
      callModel({
        model: modelFrom(() => {
          const rest = [...parts];
          return Promise.resolve(
            new ReadableStream({
              pull: (controller) => {
                const next = rest.shift();
                if (next === undefined) controller.error(new TypeError("terminated"));
                else controller.enqueue(next);
              },
            }),
          );
        }),
        prompt,
        tools: [],
        signal: new AbortController().signal,
      });
    expect(await breaking([part({ type: "text-delta", id: "0", delta: "a" })])).toMatchObject({
      ok: false,
      error: { kind: "cut_stream" },
    });
    expect(await breaking([part({ type: "text-delta", id: "0", delta: "a" }), finish("stop")])).toMatchObject({
      ok: true,
      text: "a",
    });
  });

  test("an error part ends the call, whatever comes after it", async () => {
    const error = { message: "Overloaded", type: "overloaded_error" };
    expect(await bad([part({ type: "error", error }), finish("stop")])).toEqual({
      kind: "transient",
      code: "overloaded",
      message: "Overloaded",
    });
  });

  test("a model that throws at once, or is no model, is a failure and not an exception", async () => {
    const throwing = modelFrom(() => {
      throw new Error("no such thing");
    });
    const request = { prompt, tools: [], signal: new AbortController().signal };
    expect(await callModel({ ...request, model: throwing })).toMatchObject({ ok: false, error: { kind: "permanent" } });
    const [hollow] = JSON.parse("[{}]");
    expect(await callModel({ ...request, model: hollow })).toMatchObject({ ok: false, error: { kind: "permanent" } });
  });
});
