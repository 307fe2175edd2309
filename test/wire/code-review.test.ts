import { field, isJsonObject, type Json, parseJson, type SluiceEvent } from "@sluice/core";
import { codeReview } from "@sluice/stages/pipelines";
import { describe, expect, onTestFinished, test } from "vitest";
import { PROVIDERS, providerOf, TEST_KEY } from "../support/providers.ts";
import {
  AT,
  auth,
  changed,
  edit,
  other,
  planned,
  review,
  SCRIPT,
  STAGES,
  task,
  trim,
  troubled,
  usage,
} from "../support/review-run.ts";
import { dataOf } from "../support/run-kit.ts";
import type { ServerReply } from "../support/sse-server.ts";
import { tempFolder } from "../support/tools.ts";
import { latestResults, type WireRequest } from "../support/wire-request.ts";
import { wiredSession } from "../support/wired-session.ts";

// Plan, Execute and Review on real files, over every provider package and its own wire format: once undisturbed, and once
// with each thing that goes wrong with a provider.

/** What the records of model calls say of their usage. */
function recordedUsage(records: readonly { readonly value?: string }[]): readonly Json[] {
  return records.flatMap(({ value }) => {
    const parsed = parseJson(value ?? "null");
    const reply = parsed.ok ? field(parsed.value, "reply") : undefined;
    return isJsonObject(reply) && reply.usage !== undefined ? [reply.usage] : [];
  });
}

function retries(events: readonly SluiceEvent[]): readonly Json[] {
  return dataOf(events, "model.retried").map(({ code }) => code ?? null);
}

describe.each(PROVIDERS)("codeReview over %s", (name) => {
  const provider = providerOf(name);

  function expectDone({ result, workspace }: Awaited<ReturnType<typeof review>>): void {
    expect(result).toMatchObject({
      status: "completed",
      output: { verdict: "approve", changes: changed.changes, plan: planned.summary },
      denied: [],
    });
    expect(workspace.text("src/auth.ts")).toBe(auth.replace(edit.old_string, edit.new_string));
    expect(workspace.text("src/trim.ts")).toBe(trim);
    expect(workspace.text("src/other.ts")).toBe(other);
  }

  test("changes the files; what a stage said goes back to it, and to no other", async () => {
    const run = await review(name, SCRIPT);
    expectDone(run);
    const { requests, events, result, records, waits } = run;
    expect(requests).toHaveLength(SCRIPT.length);
    expect(waits).toEqual([]);

    // Results come back in call order, each for its own call.
    const [, second] = requests;
    expect(second?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    const [, said, results] = second?.messages ?? [];
    expect(said).toMatchObject({ text: SCRIPT[0]?.text, calls: SCRIPT[0]?.calls?.map((call) => ({ ...call })) });
    expect(results?.results.map(({ id }) => id)).toEqual(said?.calls.map(({ id }) => id));
    const [read, found, readOther] = latestResults(second);
    expect(read).toContain("return check(name);");
    expect(found).toContain("src/auth.ts");
    expect(readOther).toContain("export const other");
    expect(latestResults(requests[4])).toHaveLength(2);

    // Reasoning goes back with what proves it, as the service checks for itself.
    const thought = SCRIPT[0]?.reasoning;
    expect(said?.proofs.filter((proof) => proof !== "")).toHaveLength(provider.reasoning === "proved" ? 1 : 0);
    expect(said?.reasoning).toBe(provider.reasoning === "none" ? "" : thought);

    for (const [stage, sent] of Object.entries(STAGES)) {
      const own = `${stage.toUpperCase()}-`;
      const [first = 0] = sent;
      expect(requests[first]?.messages).toMatchObject([{ role: "user", text: expect.stringContaining(task) }]);
      for (const n of sent) {
        const heard = JSON.stringify(run.server.requests[n]?.body).match(/[A-Z]+-(?=SAID|THOUGHT)/g) ?? [];
        expect(heard.filter((from) => from !== own)).toEqual([]);
        if (n > first) expectGrown(requests[n - 1], requests[n]);
      }
    }

    // Anthropic counts cached tokens beside the others, everyone else among them.
    const input = name === "anthropic" ? usage.input + usage.cacheRead : usage.input;
    expect(result.usage).toMatchObject({
      inputTokens: input * SCRIPT.length,
      outputTokens: usage.output * SCRIPT.length,
    });
    expect(recordedUsage(records)).toEqual(
      SCRIPT.map(() => ({
        inputTokens: input,
        outputTokens: usage.output,
        cacheReadTokens: provider.countsCached ? usage.cacheRead : 0,
        cacheWriteTokens: 0,
        reasoningTokens: provider.countsCached ? usage.reasoning : 0,
        known: true,
      })),
    );
    expect(JSON.stringify([events, result, records])).not.toContain(TEST_KEY);
  });

  function expectGrown(before: WireRequest | undefined, after: WireRequest | undefined): void {
    expect(after?.system).toBe(before?.system);
    expect(after?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
  }

  test("goes to the configured address rather than to the one of the environment", async () => {
    const workspace = tempFolder();
    workspace.put("src/auth.ts", auth);
    workspace.put("src/other.ts", other);
    const server = await provider.start(SCRIPT);
    onTestFinished(() => server.close());
    const elsewhere = await wiredSession(name, [], {
      cwd: workspace.root,
      baseUrls: { [provider.configured]: server.url },
    });
    expect((await elsewhere.live.run(codeReview, { task })).status).toBe("completed");
    expect(server.requests).toHaveLength(SCRIPT.length);
    expect(elsewhere.server.requests).toEqual([]);
  });

  const half = { text: "HALF of an answer", calls: [{ name: "Read", input: { file_path: "HALF" } }] };
  test.each<readonly [string, readonly ServerReply[], readonly number[], readonly string[]]>([
    ["a rate limit that says when", [{ refuse: "rate", retryAfterSeconds: 7 }], [7_000], ["rate_limited"]],
    ["two overloads", [{ refuse: "overload" }, { refuse: "overload" }], [1_000, 2_000], ["overloaded", "overloaded"]],
    ["a stream that is cut", [{ ...half, cutAfter: "HALF" }], [1_000], ["stream_cut"]],
    ["a stream that is closed in its calls", [{ ...half, cutAfter: '"Read"', cutBy: "end" }], [1_000], ["stream_cut"]],
    ["a stream that is not JSON", [{ ...half, malformedAt: "HALF" }], [1_000], ["invalid_response"]],
  ])(
    "survives %s: the turn is asked again, the same, and the half is nowhere",
    async (_what, trouble, waits, codes) => {
      const run = await troubled(name, ...trouble);
      expectDone(run);
      expect(run.waits).toEqual(waits);
      expect(retries(run.events)).toEqual(codes);
      expect(run.requests).toHaveLength(SCRIPT.length + trouble.length);
      for (const n of trouble.keys()) expect(run.requests[AT + 1 + n]).toEqual(run.requests[AT]);
      expect(JSON.stringify([run.requests, run.events, run.records])).not.toContain("HALF");
    },
  );

  test("survives an overload in the middle of a stream", async () => {
    const run = await troubled(name, { ...half, fail: "overload" });
    expectDone(run);
    expect(run.waits).toEqual([1_000]);
    expect(run.requests[AT + 1]).toEqual(run.requests[AT]);
    expect(JSON.stringify([run.requests, run.events])).not.toContain("HALF");
  });

  test("survives arguments that are not JSON: the model reads what is wrong, and nothing is asked twice", async () => {
    const run = await troubled(name, { calls: [{ name: "Read", rawInput: '{"file_path": "src/au' }] });
    expectDone(run);
    expect(run.waits).toEqual([]);
    expect(run.requests).toHaveLength(SCRIPT.length + 1);
    expect(latestResults(run.requests[AT + 1])).toMatchObject([
      { code: "invalid_tool_input", issues: [{ path: "$" }] },
    ]);
  });

  test.each<readonly [string, ServerReply, object]>([
    ["a key that is refused", { refuse: "key" }, { code: "unauthorized", status: provider.wrongKey }],
    ["a content filter", { text: "I cannot help", stop: "filter" }, { code: "content_filter" }],
    ["a content filter before the first word", { stop: "filter" }, { code: "content_filter" }],
  ])("fails with code model on %s, and asks no more", async (_what, trouble, detail) => {
    const { result, waits, requests, workspace, events } = await troubled(name, trouble);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "model" },
      stages: [{ executionId: "plan#1", status: "failed", code: "model", detail, turns: 2 }],
    });
    expect([waits, retries(events)]).toEqual([[], []]);
    expect(requests).toHaveLength(AT + 1);
    expect(workspace.text("src/auth.ts")).toBe(auth);
  });

  test("fails with context_overflow when the prompt is too long", async () => {
    const { result, requests } = await troubled(name, { refuse: "overflow" });
    expect(result).toMatchObject({ status: "failed", error: { code: "context_overflow" } });
    expect(requests).toHaveLength(AT + 1);
  });
});
