import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { context, SpanKind, trace } from "@opentelemetry/api";
import { done, fail, fanOut, type Json, pipeline, stage } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { openTelemetry } from "@sluice/stages/opentelemetry";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { TEST_KEY } from "../support/providers.ts";
import { review, SCRIPT, usage } from "../support/review-run.ts";
import { eventsOf, eventually, tool } from "../support/run-kit.ts";
import { traced, withContexts } from "../support/spans.ts";
import type { ServerCall, ServerReply } from "../support/sse-server.ts";
import { turned, wiredSession } from "../support/wired-session.ts";

// Runs over a real provider package and a loopback server, seen through the SDK of OpenTelemetry.

const input = z.object({ task: z.string() });
const task = { task: "Find the bug, which only SECRET-OF-THE-TASK knows." };
const summary = z.object({ summary: z.string() });
const finish: ServerCall = { name: "finish", input: { summary: "found it" } };

function worker(id: string, allowedTools: readonly string[] = ["Look", "Mark"]) {
  return stage({
    prompt: `You find bugs in ${id}.`,
    allowedTools,
    completionTool: "finish",
    completionSchema: summary,
    turnCap: 9,
  });
}

function one() {
  return pipeline({
    id: "one",
    input,
    stages: { work: worker("all") },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}

const tools = [tool("Look", { effect: "read" }), tool("Mark"), tool("Push")];
const ends: ServerReply = { calls: [finish] };
const look = (at: Json): ServerCall => ({ name: "Look", input: { at } });

describe("a run as spans", () => {
  test("codeReview: run, stages, turns, calls of the model and of tools, in one trace", async () => {
    const seen = traced();
    const { result } = await review("anthropic", SCRIPT, { telemetry: openTelemetry(seen) });
    const chat = "      chat claude-sonnet-4-5";
    expect(seen.tree()).toEqual([
      "invoke_workflow codeReview",
      "  invoke_agent plan",
      "    turn",
      chat,
      "      execute_tool Read",
      "      execute_tool Grep",
      "      execute_tool Read",
      "    turn",
      chat,
      "  invoke_agent execute",
      "    turn",
      chat,
      "      execute_tool Read",
      "    turn",
      chat,
      "      execute_tool Edit",
      "      execute_tool Write",
      "    turn",
      chat,
      "  invoke_agent review",
      "    turn",
      chat,
    ]);
    expect(seen.open()).toBe(0);
    expect(new Set(seen.spans().map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(new Set(seen.spans().map(({ attributes }) => attributes["gen_ai.conversation.id"]))).toEqual(
      new Set([result.runId]),
    );

    expect(seen.attributes("invoke_workflow codeReview")).toMatchObject({
      "gen_ai.operation.name": "invoke_workflow",
      "gen_ai.workflow.name": "codeReview",
      "sluice.run.id": result.runId,
      "sluice.run.status": "completed",
      "sluice.denied": 0,
    });
    expect(seen.attributes("invoke_agent plan")).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "plan",
      "sluice.execution.id": "plan#1",
      "sluice.attempt": 1,
      "sluice.attempt.outcome": "completed",
      "sluice.executed_transition_from": "plan",
      "sluice.executed_transition_to": "execute",
    });
    expect(seen.attributes("execute_tool Edit")).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "Edit",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": "t2.c0",
      "gen_ai.agent.name": "execute",
      "sluice.call.verdict": "approved",
      "sluice.call.approved_by": "envelope",
      "sluice.call.outcome": "ok",
    });
    expect(seen.named("turn")[0]?.attributes).toMatchObject({
      "sluice.turn": 1,
      "sluice.finish_reason": "tool-calls",
      "sluice.calls": 3,
    });
    const [asked] = seen.named("chat claude-sonnet-4-5");
    expect(asked?.kind).toBe(SpanKind.CLIENT);
    expect(asked?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "anthropic",
      "gen_ai.request.model": "claude-sonnet-4-5",
      "gen_ai.request.stream": true,
      "gen_ai.response.model": "claude-sonnet-4-5",
      "gen_ai.response.id": "msg_0",
      "gen_ai.response.finish_reasons": ["tool-calls"],
      "gen_ai.usage.input_tokens": usage.input + usage.cacheRead,
      "gen_ai.usage.output_tokens": usage.output,
      "gen_ai.usage.cache_read.input_tokens": usage.cacheRead,
    });
    const routes = seen
      .spans()
      .flatMap(({ name, events }) => events.map((event) => [name, event.name, event.attributes]));
    expect(routes).toContainEqual([
      "invoke_agent plan",
      "sluice.route.decided",
      { "sluice.from": "plan", "sluice.choice": "to", "sluice.to": "execute" },
    ]);
  });

  test("nothing of prompts, answers, arguments and results is in them", async () => {
    const seen = traced();
    await review("anthropic", SCRIPT, { telemetry: openTelemetry(seen) });
    const all = JSON.stringify(
      seen.spans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    );
    for (const said of ["SAID", "THOUGHT", "trim", "login", "auth.ts", "sk-test"]) expect(all).not.toContain(said);
  });

  test("a key that a provider sends back as its own words is in no span", async () => {
    const seen = traced();
    const echo = (events: readonly string[]): readonly string[] =>
      events.map((event) => event.replace(/"(id|model)":"[^"]+"/g, `"$1":"of ${TEST_KEY}"`));
    const { live } = await wiredSession("anthropic", [{ ...ends, events: echo }], {
      telemetry: openTelemetry(seen),
      tools,
    });
    await live.run(one(), task);
    const said = JSON.stringify(seen.spans().map(({ name, attributes }) => [name, attributes]));
    expect(said).toContain("[redacted:ANTHROPIC_API_KEY]");
    expect(said).not.toContain(TEST_KEY);
  });

  test("siblings stand side by side below the run that forked", async () => {
    const seen = traced();
    const forks = pipeline({
      id: "forks",
      input,
      stages: { start: worker("a"), left: worker("b"), right: worker("c"), join: worker("d") },
      initial: "start",
      next: {
        start: () => fanOut(["left", "right"], { join: "join" }),
        join: ({ output }) => done(output),
      },
    });
    const { live } = await wiredSession("anthropic", () => ends, { telemetry: openTelemetry(seen), tools });
    const result = await live.run(forks, task);
    const stages = ["start", "left", "right", "join"];
    expect(seen.tree().filter((line) => !/^ {4}/.test(line))).toEqual([
      "invoke_workflow forks",
      ...stages.map((id) => `  invoke_agent ${id}`),
    ]);
    expect(seen.tree().filter((line) => /^ {6}/.test(line))).toEqual(stages.map(() => "      chat claude-sonnet-4-5"));
    expect(seen.attributes("invoke_agent left")).toMatchObject({
      "sluice.run.id": `${result.runId}/fan-1/left`,
      "gen_ai.conversation.id": result.runId,
      "sluice.attempt.outcome": "completed",
    });
    expect(seen.open()).toBe(0);
  });

  test("a sibling that fails is an error, the one that is cancelled over it is none, and all have ended", async () => {
    const seen = traced();
    const forks = pipeline({
      id: "forks",
      input,
      stages: { start: worker("START"), left: worker("LEFT"), right: worker("RIGHT"), join: worker("JOIN") },
      initial: "start",
      next: { start: () => fanOut(["left", "right"], { join: "join" }), join: ({ output }) => done(output) },
    });
    const hold = new Promise<void>((resolve) => onTestFinished(() => resolve()));
    let heldOne: () => void = () => undefined;
    const rightIsAsked = new Promise<void>((resolve) => {
      heldOne = resolve;
    });
    const { live } = await wiredSession(
      "anthropic",
      ({ body }) => {
        const said = JSON.stringify(body);
        if (said.includes("RIGHT")) {
          heldOne();
          return { hold };
        }
        return said.includes("LEFT") ? rightIsAsked.then(() => ({ refuse: "request" })) : ends;
      },
      { telemetry: openTelemetry(seen), tools },
    );
    await live.run(forks, task);
    expect(seen.open()).toBe(0);
    expect(seen.tree().filter((line) => !/^ {4}/.test(line))).toEqual([
      "invoke_workflow forks ! fan_out",
      "  invoke_agent start",
      "  invoke_agent left ! model",
      "  invoke_agent right",
    ]);
    expect(seen.attributes("invoke_agent right")["sluice.attempt.outcome"]).toBe("cancelled");
  });

  test("a denied call is a span that says so, and no error; a person's answer is a span of its own", async () => {
    const seen = traced();
    const deny = { name: "rule", answer: async () => ({ kind: "deny", reason: "not SECRET-OF-THE-ANSWER" }) as const };
    const approve = { name: "rule", answer: async () => ({ kind: "approve" }) as const };
    const replies = [
      {
        calls: [
          { name: "Push", input: {} },
          { name: "Nothing\u202Ewrong", input: {} },
        ],
      },
      ends,
    ];
    for (const interactor of [deny, approve]) {
      const { live } = await wiredSession("anthropic", replies, {
        telemetry: openTelemetry(seen),
        tools,
        interactors: [interactor],
      });
      await live.run(one(), task);
    }
    const run = (pushed: readonly string[]) => [
      "invoke_workflow one",
      "  invoke_agent work",
      "    turn",
      "      chat claude-sonnet-4-5",
      ...pushed,
      "      execute_tool",
      "    turn",
      "      chat claude-sonnet-4-5",
    ];
    const asked = ["      request grantStageTool", "      execute_tool Push"];
    expect(seen.tree()).toEqual([...run(asked), ...run(asked)]);
    const verdicts = [...seen.named("execute_tool Push"), ...seen.named("execute_tool")].map(({ attributes }) => [
      attributes["gen_ai.tool.name"],
      attributes["sluice.call.verdict"],
      attributes["sluice.call.cause"] ?? attributes["sluice.call.approved_by"],
      attributes["sluice.call.outcome"],
    ]);
    expect(verdicts).toEqual([
      ["Push", "refused", "denied", undefined],
      ["Push", "approved", "grant", "ok"],
      ["Nothing\uFFFDwrong", "refused", "unknown_tool", undefined],
      ["Nothing\uFFFDwrong", "refused", "unknown_tool", undefined],
    ]);
    expect(seen.named("request grantStageTool").map(({ attributes }) => attributes["sluice.request.answer"])).toEqual([
      "deny",
      "approve",
    ]);
    expect(JSON.stringify(seen.spans().map(({ attributes, events }) => [attributes, events]))).not.toContain("SECRET");
  });

  test("a question to a person is a span beside the call that asks it", async () => {
    const seen = traced();
    const answer = async () => ({ kind: "value", value: "SECRET-OF-THE-ANSWER" }) as const;
    const asks = pipeline({
      id: "asks",
      input,
      stages: { work: worker("all", ["AskUser"]) },
      initial: "work",
      next: { work: ({ output }) => done(output) },
    });
    const call = { name: "AskUser", input: { question: "SECRET-OF-THE-QUESTION?" } };
    const { live } = await wiredSession("anthropic", [{ calls: [call] }, ends], {
      telemetry: openTelemetry(seen),
      interactors: [{ name: "person", answer }],
    });
    await live.run(asks, task);
    expect(seen.tree().slice(2, 6)).toEqual([
      "    turn",
      "      chat claude-sonnet-4-5",
      "      execute_tool AskUser",
      "      request askUser",
    ]);
    expect(seen.attributes("execute_tool AskUser")["sluice.call.outcome"]).toBe("ok");
    expect(seen.attributes("request askUser")["sluice.request.answer"]).toBe("value");
    expect(JSON.stringify(seen.spans().map(({ attributes, events }) => [attributes, events]))).not.toContain("SECRET");
  });

  test("a model that fails: each try a span, the one that failed in error, the retry an event of the turn", async () => {
    const seen = traced();
    const clock = handClock(1_700_000_000_000);
    const { live } = await wiredSession("anthropic", [{ refuse: "overload" }, ends], {
      telemetry: openTelemetry(seen),
      tools,
      clock,
    });
    const { waits } = await turned(live, clock, live.start(one(), task));
    expect(seen.tree()).toEqual([
      "invoke_workflow one",
      "  invoke_agent work",
      "    turn",
      "      chat claude-sonnet-4-5 ! overloaded",
      "      chat claude-sonnet-4-5",
    ]);
    const [turn] = seen.named("turn");
    expect(turn?.events.map(({ name, attributes }) => [name, attributes?.["sluice.code"]])).toContainEqual([
      "sluice.model.retried",
      "overloaded",
    ]);
    expect(
      seen.named("chat claude-sonnet-4-5").map(({ attributes }) => attributes["http.response.status_code"]),
    ).toEqual([529, undefined]);
    // The session's clock, which is that of the record.
    expect(turn?.startTime).toEqual([1_700_000_000, 0]);
    expect(turn?.duration).toEqual([(waits[0] ?? 0) / 1_000, 0]);
  });

  test("a model that refuses for good fails the turn, the stage and the run, by their codes", async () => {
    const seen = traced();
    const { live } = await wiredSession("anthropic", [{ refuse: "request" }], {
      telemetry: openTelemetry(seen),
      tools,
    });
    await live.run(one(), task);
    expect(seen.tree()).toEqual([
      "invoke_workflow one ! model",
      "  invoke_agent work ! model",
      "    turn ! bad_request",
      "      chat claude-sonnet-4-5 ! bad_request",
    ]);
    expect(seen.spans().map(({ status }) => status.message)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("a tool that fails is an error of its span alone; a second attempt is a span of its own", async () => {
    const seen = traced();
    const broken = tool("Mark", {
      execute: async () => {
        throw new Error("broken");
      },
    });
    const twice = pipeline({
      id: "twice",
      input,
      stages: {
        work: stage({
          prompt: "Find.",
          allowedTools: ["Mark"],
          completionTool: "finish",
          completionSchema: summary,
          turnCap: 3,
          assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: "once more" } : "ok"),
        }),
      },
      initial: "work",
      next: { work: { completed: ({ output }) => done(output), failed: () => fail("no") } },
    });
    const replies: readonly ServerReply[] = [{ calls: [{ name: "Mark", input: {} }] }, ends, ends];
    const { live } = await wiredSession("anthropic", replies, { telemetry: openTelemetry(seen), tools: [broken] });
    await live.run(twice, task);
    const turn = ["    turn", "      chat claude-sonnet-4-5"];
    expect(seen.tree()).toEqual([
      "invoke_workflow twice",
      "  invoke_agent work",
      ...turn,
      "      execute_tool Mark ! tool_error",
      ...turn,
      "  invoke_agent work",
      ...turn,
    ]);
    expect(seen.named("invoke_agent work").map(({ attributes }) => attributes["sluice.attempt.outcome"])).toEqual([
      "retry",
      "completed",
    ]);
  });
});

describe("a run that stops in between", () => {
  /** Its model is asked and does not answer; the run is stopped then. */
  async function stopped(how: "cancel" | "suspend") {
    const seen = traced();
    const memory = createMemoryJournals();
    const clock = handClock();
    const telemetry = openTelemetry(seen);
    const options = { telemetry, tools, clock, host: () => createHost(memory.connect(), { clock }) };
    const hold = new Promise<void>((resolve) => onTestFinished(() => resolve()));
    const replies: readonly ServerReply[] = [{ calls: [look(1)] }, { hold, holdAtEvent: 1, ...ends }];
    const { live, server } = await wiredSession("anthropic", replies, options);
    const handle = live.start(one(), task);
    await eventually(() => server.requests.length === 2);
    if (how === "cancel") await handle.cancel("enough");
    else await handle.suspend();
    await live.close();
    return { seen, options, runId: handle.runId };
  }

  test("suspended: every span ends and says so; resumed, a trace of its own holds what is done then, and no more", async () => {
    const { seen, options, runId } = await stopped("suspend");
    expect(seen.open()).toBe(0);
    const first = seen.tree();
    expect(first).toEqual([
      "invoke_workflow one",
      "  invoke_agent work",
      "    turn",
      "      chat claude-sonnet-4-5",
      "      execute_tool Look",
      "    turn",
      "      chat claude-sonnet-4-5",
    ]);
    expect(seen.attributes("invoke_workflow one")["sluice.run.status"]).toBe("suspended");
    expect(seen.attributes("invoke_agent work")["sluice.attempt.outcome"]).toBe("suspended");

    const { live } = await wiredSession("anthropic", [ends], options);
    await live.resume(one(), runId);
    expect(seen.tree().slice(first.length)).toEqual([
      "invoke_workflow one",
      "  invoke_agent work",
      "    turn",
      "      chat claude-sonnet-4-5",
    ]);
    const [before, after] = seen.named("invoke_workflow one");
    expect(after?.attributes).toMatchObject({
      "gen_ai.conversation.id": runId,
      "sluice.run.resumed": true,
      "sluice.run.status": "completed",
    });
    expect(after?.links.map((link) => link.context.spanId)).toEqual([before?.spanContext().spanId]);
    expect(after?.spanContext().traceId).not.toBe(before?.spanContext().traceId);
    expect(seen.named("turn").map(({ attributes }) => attributes["sluice.turn"])).toEqual([1, 2, 2]);
    await eventsOf(live.host, runId);
  });

  test("cancelled: no span is an error, and all have ended", async () => {
    const { seen } = await stopped("cancel");
    expect(seen.open()).toBe(0);
    expect(seen.tree().filter((line) => line.includes("!"))).toEqual([]);
    expect(seen.attributes("invoke_workflow one")["sluice.run.status"]).toBe("cancelled");
    expect(seen.named("chat claude-sonnet-4-5").at(-1)?.attributes["sluice.aborted"]).toBe(true);
  });
});

describe("the context that is active", () => {
  test("the model's request and a tool's work run inside their spans, and the run inside the caller's", async () => {
    withContexts();
    const seen = traced();
    const within: (string | undefined)[] = [];
    const active = (): string | undefined => trace.getActiveSpan()?.spanContext().spanId;
    // Where instrumentations of fetch listen, and add their header.
    const onRequest = (message: unknown): void => {
      const request = z
        .object({ request: z.custom<{ addHeader(name: string, value: string): void }>() })
        .parse(message);
      request.request.addHeader("traceparent", `00-${"1".repeat(32)}-${active() ?? "none"}-01`);
    };
    subscribe("undici:request:create", onRequest);
    onTestFinished(() => void unsubscribe("undici:request:create", onRequest));
    const sees = (name: string, effect: "read" | "write") =>
      tool(name, {
        effect,
        execute: async () => {
          await new Promise((resolve) => setImmediate(resolve));
          within.push(active());
          return { ok: true, output: "seen" };
        },
      });
    const replies: readonly ServerReply[] = [{ calls: [look(1), look(2), { name: "Mark", input: {} }] }, ends];
    const { live, server } = await wiredSession("anthropic", replies, {
      telemetry: openTelemetry(seen),
      tools: [sees("Look", "read"), sees("Mark", "write")],
      onCall: async () => {
        within.push(active());
      },
    });
    const outer = seen.tracerProvider.getTracer("test").startSpan("request");
    await context.with(trace.setSpan(context.active(), outer), () => live.run(one(), task));
    outer.end();

    const idOf = (name: string, n = 0): string | undefined => seen.named(name)[n]?.spanContext().spanId;
    expect(seen.tree().slice(0, 2)).toEqual(["request", "  invoke_workflow one"]);
    const turn = idOf("turn");
    expect(within).toEqual([
      turn,
      turn,
      idOf("execute_tool Look"),
      idOf("execute_tool Look", 1),
      turn,
      idOf("execute_tool Mark"),
    ]);
    const sent = server.requests.map(({ headers }) => String(headers.traceparent).split("-")[2]);
    expect(sent).toEqual([idOf("chat claude-sonnet-4-5"), idOf("chat claude-sonnet-4-5", 1)]);
    expect(trace.getActiveSpan()).toBeUndefined();
  });
});

describe("telemetry that throws", () => {
  const thrower = (): never => {
    throw new Error("the tracer is broken");
  };
  const nothing = { within: thrower, ended: thrower };
  test.each([
    ["at the run", { run: thrower }],
    [
      "at everything",
      {
        run: () => ({
          sibling: thrower,
          attempt: thrower,
          recorded: thrower,
          within: thrower,
          model: thrower,
          tool: thrower,
          ended: thrower,
        }),
      },
    ],
    [
      "within activities, before the work, and calls it twice besides",
      {
        run: () => ({
          sibling: thrower,
          attempt: () => undefined,
          recorded: () => undefined,
          within: (work: () => void) => {
            work();
            work();
          },
          model: () => nothing,
          tool: () => nothing,
          ended: () => undefined,
        }),
      },
    ],
  ])("%s changes nothing of a run, and is reported once", async (_when, telemetry) => {
    const ran: string[] = [];
    const mark = tool("Mark", {
      execute: async () => {
        ran.push("Mark");
        return { ok: true, output: "marked" };
      },
    });
    const replies: readonly ServerReply[] = [{ calls: [look(1), { name: "Mark", input: {} }] }, ends];
    const all = [tool("Look", { effect: "read" }), mark];
    const faults: unknown[] = [];
    const plain = await wiredSession("anthropic", replies, { tools: all });
    const watched = await wiredSession("anthropic", replies, {
      tools: all,
      telemetry,
      onFault: (fault) => void faults.push(fault),
    });
    const expected = await plain.live.run(one(), task);
    const result = await watched.live.run(one(), task);
    expect({ ...result, runId: "" }).toEqual({ ...expected, runId: "" });
    expect(watched.requests()).toEqual(plain.requests());
    expect(ran).toEqual(["Mark", "Mark"]);
    expect(faults).toEqual([expect.objectContaining({ by: "telemetry", message: expect.stringContaining("broken") })]);
    const types = async (live: typeof plain.live, runId: string) =>
      (await eventsOf(live.host, runId)).map(({ type }) => type);
    expect(await types(watched.live, result.runId)).toEqual(await types(plain.live, expected.runId));
  });
});
