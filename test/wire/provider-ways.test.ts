import { type Json, type JsonObject, parseJson } from "@sluice/core";
import { codeReview } from "@sluice/stages/pipelines";
import { describe, expect, onTestFinished, test } from "vitest";
import { type ProviderName, providerOf, TEST_KEY } from "../support/providers.ts";
import { AT, planned, SCRIPT, task, troubled } from "../support/review-run.ts";
import { dataOf } from "../support/run-kit.ts";
import { type ServerReply, sse } from "../support/sse-server.ts";
import { tempFolder } from "../support/tools.ts";
import { latestResults } from "../support/wire-request.ts";
import { wiredSession } from "../support/wired-session.ts";

// What one provider does in a way of its own, seen through a whole run.

const FILTERED = {
  status: "failed",
  error: { code: "model" },
  stages: [{ executionId: "plan#1", turns: 2, detail: { code: "content_filter" } }],
};

/** A reply whose events are these lines instead. */
function lines(...events: readonly Json[]): ServerReply {
  return { events: () => events.map((event) => sse(event)) };
}

/** An event of the Responses API, read, changed and written again. */
function rewritten(change: (data: JsonObject) => readonly JsonObject[]): NonNullable<ServerReply["events"]> {
  return (events) =>
    events.flatMap((event) => {
      const parsed = parseJson(/^data: (.*)$/m.exec(event)?.[1] ?? "");
      if (!parsed.ok || typeof parsed.value !== "object" || parsed.value === null || Array.isArray(parsed.value))
        return [event];
      return change(Object.assign<JsonObject, object>({}, parsed.value)).map((data) => sse(data));
    });
}

describe("Google", () => {
  test("refuses a whole prompt without an answer: the stage fails, and nothing is asked again", async () => {
    const { result, requests } = await troubled(
      "google",
      lines({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 9 } }),
    );
    expect(result).toMatchObject(FILTERED);
    expect(requests).toHaveLength(AT + 1);
  });

  test.each(["SAFETY", "RECITATION", "BLOCKLIST", "SPII"])("stops with %s: the stage fails", async (stop) => {
    const { result } = await troubled("google", { text: "I was", stop });
    expect(result).toMatchObject(FILTERED);
  });

  test("says itself that a call was malformed: the turn is asked again", async () => {
    const { result, waits, requests, events } = await troubled("google", { stop: "MALFORMED_FUNCTION_CALL" });
    expect(result.status).toBe("completed");
    expect(waits).toEqual([1_000]);
    expect(dataOf(events, "model.retried")).toMatchObject([{ code: "provider_error" }]);
    expect(requests[AT + 1]).toEqual(requests[AT]);
  });

  test("signs the first of parallel calls, and gets that signature back where it was", async () => {
    const { server } = await troubled("google");
    const contents = server.requests[AT]?.body.contents;
    expect(contents).toMatchObject([
      { role: "user" },
      {
        role: "model",
        parts: [
          { thought: true },
          { text: SCRIPT[0]?.text },
          { functionCall: { name: "Read" }, thoughtSignature: "signature-0" },
          { functionCall: { name: "Grep" } },
          { functionCall: { name: "Read" } },
        ],
      },
      { role: "user" },
    ]);
    expect(JSON.stringify(contents).match(/thoughtSignature/g)).toHaveLength(1);
    expect(JSON.stringify(server.requests)).not.toContain("skip_thought_signature_validator");
  });
});

describe("OpenAI", () => {
  const exhausted: ServerReply = {
    status: 429,
    error: { type: "insufficient_quota", code: "insufficient_quota", message: "You exceeded your current quota." },
    headers: { "retry-after": "1" },
  };
  test.each(["openai", "openai-chat"] as const)(
    "a quota that is used up is not asked for again over %s",
    async (name) => {
      const { headers: _retryAfter, ...forGood } = exhausted;
      const { result, waits, requests } = await troubled(name, forGood);
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "model" },
        stages: [{ detail: { code: "quota_exhausted", status: 429 } }],
      });
      expect(waits).toEqual([]);
      expect(requests).toHaveLength(AT + 1);
    },
  );

  test.each(["openai", "openai-chat"] as const)(
    "a quota that is whole again at a near time is asked for again then over %s",
    async (name) => {
      const { result, waits } = await troubled(name, exhausted);
      expect(result).toMatchObject({ status: "completed" });
      expect(waits).toEqual([1_000]);
    },
  );

  test("a refusal in place of an answer is a content filter's, over chat", async () => {
    const chunk = (delta: JsonObject, finish_reason: string | null = null): Json => ({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "gpt-4.1",
      choices: [{ index: 0, delta, finish_reason }],
    });
    const { result, requests } = await troubled(
      "openai-chat",
      lines(chunk({ role: "assistant", refusal: "" }), chunk({ refusal: "I cannot" }), chunk({}, "stop")),
    );
    expect(result).toMatchObject(FILTERED);
    expect(requests).toHaveLength(AT + 1);
  });

  test("a refusal in place of an answer is a content filter's, over Responses", async () => {
    const { result, requests } = await troubled("openai", {
      text: "I cannot",
      events: rewritten((data) => [
        data.type === "response.output_text.delta" ? { ...data, type: "response.refusal.delta" } : data,
      ]),
    });
    expect(result).toMatchObject(FILTERED);
    expect(requests).toHaveLength(AT + 1);
  });

  test.each([
    ["server_error", "The server had an error", "server_error"],
    ["rate_limit_exceeded", "Rate limit reached", "rate_limited"],
  ])("a response that fails with %s behind its beginning is asked for again", async (code, message, retried) => {
    const { result, waits, events } = await troubled("openai", {
      text: "HALF",
      events: rewritten((data) =>
        data.type === "response.completed"
          ? [{ ...data, type: "response.failed", response: { id: "resp", status: "failed", error: { code, message } } }]
          : [data],
      ),
    });
    expect(result.status).toBe("completed");
    expect(waits).toEqual([1_000]);
    expect(dataOf(events, "model.retried")).toMatchObject([{ code: retried }]);
  });

  test("reasoning in several summaries goes back as the one item it was", async () => {
    const part = (summary_index: number): readonly JsonObject[] => {
      const at = { item_id: "rs_1", output_index: 0, summary_index };
      return [
        { type: "response.reasoning_summary_part.added", ...at, part: { type: "summary_text", text: "" } },
        { type: "response.reasoning_summary_text.delta", ...at, delta: `more ${summary_index}` },
        { type: "response.reasoning_summary_part.done", ...at, part: { type: "summary_text", text: "" } },
      ];
    };
    const { result, server, requests } = await troubled("openai", {
      reasoning: "first, ",
      calls: [{ name: "Grep", input: { pattern: "x" } }],
      events: rewritten((data) =>
        data.type === "response.reasoning_summary_part.done" ? [data, ...part(1), ...part(2)] : [data],
      ),
    });
    // The server only knows of the first summary, and says so: the item itself was put together.
    expect(result).toMatchObject({ status: "failed", stages: [{ detail: { code: "bad_request" } }] });
    const input = server.requests[AT + 1]?.body.input;
    const items = Array.isArray(input) ? input : [];
    expect(items.filter((item) => JSON.stringify(item).includes('"rs_1"'))).toMatchObject([
      {
        type: "reasoning",
        encrypted_content: "sealed-1",
        summary: ["first, ", "more 1", "more 2"].map((text) => ({ type: "summary_text", text })),
      },
    ]);
    expect(requests).toHaveLength(AT + 2);
  });

  test("a wrapper of parallel calls is taken apart: each call is judged, and each gets its result", async () => {
    const use = (name: string, parameters: JsonObject): Json => ({ recipient_name: `functions.${name}`, parameters });
    const { result, requests } = await troubled("openai", {
      calls: [
        {
          name: "parallel",
          input: { tool_uses: [use("Read", { file_path: "src/other.ts" }), use("Grep", { pattern: "login" })] },
        },
      ],
    });
    expect(result.status).toBe("completed");
    expect(requests[AT + 1]?.messages.at(-2)?.calls.map(({ name }) => name)).toEqual(["Read", "Grep"]);
    expect(latestResults(requests[AT + 1])).toEqual([
      expect.stringContaining("export const other"),
      expect.stringContaining("src/auth.ts"),
    ]);
  });
});

describe.each(["ollama", "openai-compatible"] as const)("a server of one's own behind %s", (name: ProviderName) => {
  test("needs no key", async () => {
    const workspace = tempFolder();
    const provider = providerOf(name);
    const submit: ServerReply = { calls: [{ name: "submit_plan", input: planned }] };
    const server = await provider.start([submit, { refuse: "key" }]);
    onTestFinished(() => server.close());
    const env = Object.fromEntries(Object.entries(provider.env(server.url)).filter(([, value]) => value !== TEST_KEY));
    const { live } = await wiredSession(name, [], { cwd: workspace.root, env });
    const result = await live.run(codeReview, { task });
    expect(result).toMatchObject({
      status: "failed",
      stages: [{ status: "completed" }, { detail: { code: "unauthorized" } }],
    });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  });
});

test("a wait of more than a minute is kept, and one that exceeds the time of all retries is not begun", async () => {
  const minutes = await troubled("anthropic", { refuse: "rate", retryAfterSeconds: 240 });
  expect(minutes.waits).toEqual([240_000]);
  const hour = await troubled("anthropic", { refuse: "rate", retryAfterSeconds: 3_600 });
  expect([hour.waits, hour.result.status]).toEqual([[], "failed"]);
});
