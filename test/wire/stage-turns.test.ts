import { done, type Json, type PersonRequest, pipeline, type StageOptions, stage } from "@sluice/core";
import type { SessionOptions } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { PROVIDERS, type ProviderName, TEST_KEY } from "../support/providers.ts";
import { dataOf, eventsOf, tool } from "../support/run-kit.ts";
import type { ServerCall, ServerReply } from "../support/sse-server.ts";
import { latestResults } from "../support/wire-request.ts";
import { turned, wiredSession } from "../support/wired-session.ts";

const input = z.object({ task: z.string() });
const task = { task: "Find the bug." };
const schema = z.object({ summary: z.string().min(3), lines: z.array(z.number()).optional() });
const finish = (summary = "found it"): ServerCall => ({ name: "finish", input: { summary } });
const look = (at: Json): ServerCall => ({ name: "Look", input: { at } });

function one(options: Partial<StageOptions<Record<never, never>, z.infer<typeof schema>, undefined>> = {}) {
  const work = stage({
    prompt: "You find bugs.",
    allowedTools: ["Look", "Mark"],
    completionTool: "finish",
    completionSchema: schema,
    turnCap: 9,
    ...options,
  });
  return pipeline({
    id: "one",
    input,
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}

/** Look reads, Mark and Push write; all leave a trace. */
function traced() {
  const ran: string[] = [];
  const execute = (name: string) => async (given: Json) => {
    ran.push(`${name} ${JSON.stringify(given)} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    ran.push(`${name} ${JSON.stringify(given)} ends`);
    return { ok: true, output: `${name} saw ${JSON.stringify(given)}` };
  };
  const tools = [
    tool("Look", { effect: "read", execute: execute("Look") }),
    tool("Mark", { execute: execute("Mark") }),
    tool("Push", { execute: execute("Push") }),
  ];
  return { ran, tools };
}

describe.each(PROVIDERS)("a stage over %s", (provider: ProviderName) => {
  async function run(
    replies: readonly ServerReply[],
    options: Pick<SessionOptions, "interactors" | "tools"> & { readonly pipe?: ReturnType<typeof one> } = {},
  ) {
    const { pipe = one(), ...rest } = options;
    const { ran, tools } = traced();
    const wired = await wiredSession(provider, replies, { tools, ...rest });
    const result = await wired.live.run(pipe, task);
    return {
      ran,
      result,
      requests: wired.requests(),
      events: await eventsOf(wired.live.host, result.runId),
      live: wired.live,
    };
  }

  describe("asks again", () => {
    async function retried(replies: readonly ServerReply[], retry: SessionOptions["retry"] = {}) {
      const { tools } = traced();
      const clock = handClock();
      const wired = await wiredSession(provider, replies, { tools, clock, retry });
      const outcome = await turned(wired.live, clock, wired.live.start(one(), task));
      return { ...outcome, requests: wired.requests() };
    }
    const busy = (said: Pick<ServerReply, "headers" | "retryAfterSeconds">): ServerReply => ({
      refuse: "rate",
      ...said,
    });

    test("when the service says so", async () => {
      const { result, waits, requests } = await retried([
        busy({ headers: { "retry-after-ms": "1250" } }),
        { calls: [look(1)] },
        busy({ retryAfterSeconds: 7 }),
        busy({}),
        { calls: [finish()] },
      ]);
      expect(result).toMatchObject({ status: "completed", stages: [{ turns: 2, attempts: 1 }] });
      expect(waits).toEqual([1_250, 7_000, 2_000]);
      expect(requests[1]).toEqual(requests[0]);
      expect(requests[3]).toEqual(requests[2]);
      expect(requests[4]).toEqual(requests[2]);
    });

    test.each([
      ["in its text", { cutAfter: "HALF-OF" }],
      ["in its calls", { cutAfter: '"Look"' }],
      ["in order, but before its end", { cutAfter: "HALF-OF", cutBy: "end" as const }],
    ])("the whole turn when the stream breaks %s; the half that came is nowhere", async (_where, cut) => {
      const half = { text: "HALF-OF-AN-ANSWER ".repeat(4), calls: [look("half"), look("other half")] };
      const { result, waits, requests, events } = await retried([
        { calls: [look(1)] },
        { ...half, ...cut },
        { text: "whole", calls: [look("whole")] },
        { calls: [finish()] },
      ]);
      expect(result).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });
      expect(waits).toEqual([1_000]);
      expect(requests[2]).toEqual(requests[1]);
      expect(requests[3]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
      expect(JSON.stringify([requests, events])).not.toMatch(/HALF|half/);
      expect(dataOf(events, "model.retried")).toMatchObject([{ turn: 2, try: 1, code: "stream_cut" }]);
    });

    test("as often as it may and no more: then the stage has failed", async () => {
      const { result, waits, requests } = await retried(
        Array.from({ length: 5 }, () => busy({})),
        { maxAttempts: 4 },
      );
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "model" },
        stages: [{ detail: { code: "rate_limited", status: 429 } }],
      });
      expect(waits).toEqual([1_000, 2_000, 4_000]);
      expect(requests).toHaveLength(4);
    });
  });

  test("401 fails with code model, and the key is in no message, event or record", async () => {
    const { result, events, live, requests } = await run([
      { status: 401, error: { message: `Incorrect API key provided: ${TEST_KEY}.` } },
    ]);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "model" },
      stages: [{ detail: { status: 401, code: "unauthorized" } }],
    });
    expect(requests).toHaveLength(1);
    expect(
      JSON.stringify([result, events, await live.host.journal(result.runId), await live.host.list()]),
    ).not.toContain(TEST_KEY);
  });

  test.each([
    ["the output limit", "length"],
    ["a content filter", "filter"],
  ])("a call cut off by %s is a typed error and does not run, also if it looks whole", async (_what, stop) => {
    const { ran, result, requests } = await run([
      { calls: [look(1), { name: "Mark", input: {} }], stop },
      { calls: [look(2), { name: "Mark", rawInput: '{"text":"half of it' }], stop },
      { calls: [finish()] },
    ]);
    expect(result.status).toBe("completed");
    expect(ran.filter((line) => line.startsWith("Mark"))).toEqual([]);
    const truncated = { code: "truncated_call", tool: "Mark" };
    expect(latestResults(requests[1])).toMatchObject(['Look saw {"at":1}', truncated]);
    expect(latestResults(requests[2])).toMatchObject(['Look saw {"at":2}', truncated]);
  });

  test("arguments that are not JSON, or do not fit, are typed errors that say where", async () => {
    const strict = tool("Strict", {
      input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    const { result, requests } = await run(
      [
        {
          calls: [
            { name: "Strict", rawInput: "{n: 1}" },
            { name: "Strict", input: { n: "1" } },
            { name: "Strict", rawInput: "[1]" },
          ],
        },
        { calls: [finish()] },
      ],
      { pipe: one({ allowedTools: ["Strict"] }), tools: [strict] },
    );
    expect(result.status).toBe("completed");
    expect(latestResults(requests[1])).toMatchObject([
      { code: "invalid_tool_input", issues: [{ path: "$" }] },
      { code: "invalid_tool_input", issues: [{ path: "$.n" }] },
      { code: "invalid_tool_input" },
    ]);
  });

  test("a tool that does not exist, by whatever name, is a typed error that names what there is", async () => {
    const { result, requests } = await run([
      {
        calls: [
          { name: "Lookk", input: {} },
          { name: "no such tool!", input: {} },
          { name: "submit_plan", input: {} },
        ],
      },
      { calls: [finish()] },
    ]);
    expect(result).toMatchObject({ status: "completed", denied: [] });
    expect(latestResults(requests[1])).toMatchObject([
      {
        code: "unknown_tool",
        reason: expect.stringContaining('did you mean "Look"'),
        allowedTools: ["Look", "Mark"],
        completionTool: "finish",
      },
      { code: "unknown_tool" },
      { code: "unknown_tool" },
    ]);
  });

  test("calls with one id get a result each, by their place", async () => {
    const { ran, result, requests } = await run([
      { calls: [1, 2, 3].map((at) => ({ id: "same", ...look(at) })) },
      { calls: [{ id: "same", ...look(4) }] },
      { calls: [finish()] },
    ]);
    expect(result.status).toBe("completed");
    expect(ran.filter((line) => line.endsWith("ends"))).toHaveLength(4);
    expect(latestResults(requests[1])).toEqual(['Look saw {"at":1}', 'Look saw {"at":2}', 'Look saw {"at":3}']);
    expect(latestResults(requests[2])).toEqual(['Look saw {"at":4}']);
    const ids = requests[2]?.messages.flatMap(({ calls }) => calls.map(({ id }) => id)) ?? [];
    expect(new Set(ids).size).toBe(4);
    expect(requests[2]?.messages.flatMap(({ results }) => results.map(({ id }) => id))).toEqual(ids);
  });

  test("parallel calls: reads together, a write alone and in its turn, one result for each in call order", async () => {
    const { ran, result, requests } = await run([
      { calls: [look(1), look(2), { name: "Mark", input: { n: 3 } }, { name: "Push", input: { n: 4 } }, look(5)] },
      { calls: [finish()] },
    ]);
    expect(result).toMatchObject({ status: "completed", denied: [{ tool: "Push", cause: "no_interactor" }] });
    expect(ran).toEqual([
      'Look {"at":1} begins',
      'Look {"at":2} begins',
      'Look {"at":1} ends',
      'Look {"at":2} ends',
      'Mark {"n":3} begins',
      'Mark {"n":3} ends',
      'Look {"at":5} begins',
      'Look {"at":5} ends',
    ]);
    expect(latestResults(requests[1])).toMatchObject([
      'Look saw {"at":1}',
      'Look saw {"at":2}',
      'Mark saw {"n":3}',
      { code: "tool_call_denied", cause: "no_interactor", tool: "Push" },
      'Look saw {"at":5}',
    ]);
  });

  test("a completion that does not fit comes back with where it does not; one that fits then ends the stage", async () => {
    const { result, requests, events } = await run([
      { calls: [{ name: "finish", input: { summary: "x", lines: ["1"] } }] },
      { calls: [{ name: "finish", rawInput: '{"summary": "cut' }] },
      { calls: [finish("a real one")] },
    ]);
    expect(result).toMatchObject({ status: "completed", output: { summary: "a real one" }, stages: [{ turns: 3 }] });
    expect(latestResults(requests[1])).toMatchObject([
      { code: "completion_schema_invalid", issues: [{ path: "$.summary" }, { path: "$.lines[0]" }] },
    ]);
    expect(latestResults(requests[2])).toMatchObject([{ code: "completion_schema_invalid" }]);
    expect(dataOf(events, "completion.rejected")).toHaveLength(2);
    expect(dataOf(events, "completion.accepted")).toEqual([{ turn: 3, callId: "t3.c0" }]);
  });

  test("a turn of text alone is answered with a nudge, and the stage continues", async () => {
    const { result, requests } = await run([
      { text: "I think I am done." },
      {},
      { text: "Really." },
      { calls: [finish()] },
    ]);
    expect(result).toMatchObject({ status: "completed", stages: [{ turns: 4 }] });
    const last = requests[3]?.messages.at(-1);
    expect(last?.role).toBe("user");
    expect(last?.text).toContain("finish");
    expect(requests[1]?.messages.slice(0, 2)).toMatchObject([
      { role: "user" },
      { role: "assistant", text: "I think I am done." },
    ]);
  });

  test("on the last turn only the completion tool is offered; without a completion the cap is the outcome", async () => {
    const { result, requests, events } = await run([{ calls: [look(1)] }, { calls: [look(2)] }, { text: "not yet" }], {
      pipe: one({ turnCap: 3 }),
    });
    expect(requests.map(({ tools }) => tools)).toEqual([
      ["Look", "Mark", "finish"],
      ["Look", "Mark", "finish"],
      ["finish"],
    ]);
    expect(result).toMatchObject({ status: "failed", error: { code: "turn_cap" }, stages: [{ turns: 3 }] });
    expect(dataOf(events, "limit.reached")).toMatchObject([{ limit: "turnCap" }]);
  });

  test("a cap that was reached with nothing but completions that did not fit is a schema failure", async () => {
    const { result } = await run([{ calls: [look(1)] }, { calls: [{ name: "finish", input: {} }] }], {
      pipe: one({ turnCap: 2 }),
    });
    expect(result).toMatchObject({ status: "failed", error: { code: "schema" } });
  });

  test("a completion beside other calls is judged last: they run first, also those that stand behind it", async () => {
    const { ran, result, events } = await run([
      { calls: [look(1), finish("early"), { name: "Mark", input: { n: 2 } }] },
    ]);
    expect(result).toMatchObject({ status: "completed", output: { summary: "early" }, stages: [{ turns: 1 }] });
    expect(ran.filter((line) => line.endsWith("ends"))).toEqual(['Look {"at":1} ends', 'Mark {"n":2} ends']);
    const types = events.map(({ type }) => type);
    expect(types.lastIndexOf("call.finished")).toBeLessThan(types.indexOf("completion.accepted"));
    expect(dataOf(events, "completion.accepted")).toEqual([{ turn: 1, callId: "t1.c1" }]);
  });

  test("of two completions in one turn the first that fits counts", async () => {
    const first = await run([{ calls: [finish("first"), finish("second")] }]);
    expect(first.result).toMatchObject({ status: "completed", output: { summary: "first" } });
    const second = await run([{ calls: [finish("x"), finish("second")] }]);
    expect(second.result).toMatchObject({ status: "completed", output: { summary: "second" } });
    const neither = await run([{ calls: [finish("x"), finish("y")] }, { calls: [finish("third")] }]);
    expect(neither.result).toMatchObject({ status: "completed", output: { summary: "third" } });
    expect(latestResults(neither.requests[1])).toMatchObject([
      { code: "completion_schema_invalid" },
      { code: "completion_schema_invalid" },
    ]);
  });

  test("the third identical call in a row does not run, and six fail the stage with code tool", async () => {
    const { ran, result, requests } = await run(Array.from({ length: 7 }, () => ({ calls: [look("again")] })));
    expect(ran.filter((line) => line.endsWith("ends"))).toHaveLength(2);
    expect(requests.slice(1).map((request) => latestResults(request)[0])).toMatchObject([
      'Look saw {"at":"again"}',
      'Look saw {"at":"again"}',
      { code: "repeated_call" },
      { code: "repeated_call" },
      { code: "repeated_call" },
    ]);
    expect(result).toMatchObject({ status: "failed", error: { code: "tool" }, stages: [{ turns: 6 }] });
  });

  test("approved once is approved for that call: the same again asks again, and with other arguments asks again", async () => {
    const asked: PersonRequest[] = [];
    const push = (n: number): ServerReply => ({ calls: [{ name: "Push", input: { n } }] });
    const { ran, result, requests } = await run([push(1), push(1), push(2), { calls: [finish()] }], {
      interactors: [
        {
          name: "me",
          answer: async (request) => {
            asked.push(request);
            return asked.length === 2 ? { kind: "deny" } : { kind: "approve" };
          },
        },
      ],
    });
    expect(result).toMatchObject({ status: "completed", denied: [{ callId: "t2.c0", cause: "denied" }] });
    expect(asked.map(({ requestId, body }) => [requestId, body.input])).toEqual([
      ["work#1/a1/t1.c0", { n: 1 }],
      ["work#1/a1/t2.c0", { n: 1 }],
      ["work#1/a1/t3.c0", { n: 2 }],
    ]);
    expect(asked[0]?.digest).toBe(asked[1]?.digest);
    expect(asked[2]?.digest).not.toBe(asked[0]?.digest);
    expect(ran.filter((line) => line.endsWith("ends"))).toEqual(['Push {"n":1} ends', 'Push {"n":2} ends']);
    expect(latestResults(requests[2])).toMatchObject([{ code: "tool_call_denied", cause: "denied" }]);
    expect(latestResults(requests[3])).toEqual(['Push saw {"n":2}']);
  });

  test("a key that a model repeats is sent back to it no more", async () => {
    const { requests, result, events, live } = await run([
      { reasoning: `The key is ${TEST_KEY}`, text: `I saw ${TEST_KEY}`, calls: [look(TEST_KEY)] },
      { calls: [finish(`done with ${TEST_KEY}`)] },
    ]);
    expect(result.status).toBe("completed");
    expect(JSON.stringify([requests, result, events, await live.host.journal(result.runId)])).not.toContain(TEST_KEY);
  });

  test("a cancel while the answer is streamed reaches the service, and the run has ended", async () => {
    const never = new Promise(() => undefined);
    const wired = await wiredSession(provider, [
      { text: "one two three four ".repeat(20), hold: never, holdAfter: "one" },
    ]);
    const handle = wired.live.start(one({ allowedTools: [] }), task);
    await new Promise<void>((resolve) => void handle.onLive(() => resolve()));
    await handle.cancel("enough");
    expect(await handle).toMatchObject({ status: "cancelled", stages: [{ status: "cancelled", reason: "enough" }] });
    await wired.server.requests[0]?.disconnected;
  });
});
