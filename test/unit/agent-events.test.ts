import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  backToInterrupted,
  done,
  final,
  type GuardScope,
  type Json,
  type JsonObject,
  pipeline,
  stage,
} from "@sluice/core";
import { type ScriptedTurn, transcriptEntries } from "@sluice/stages";
import { replayRun } from "@sluice/stages/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { dataOf, eventsOf, eventually, session, tool, twoHosts } from "../support/run-kit.ts";
import { type Heard, lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

const input = z.object({ task: z.string() });
const task = { task: "Ship the release." };
const send = (event: Json, data?: JsonObject): ScriptedTurn => ({
  calls: [{ tool: "transition", input: data === undefined ? { event } : { event, data } }],
});
const getState = { tool: "get_state", input: {} };
const look = (at: number) => ({ tool: "Look", input: { at } });
const reader = tool("Look", { effect: "read", execute: async (given) => ({ ok: true, output: given }) });

const passed = {
  text: "the tests passed",
  evaluate: ({ ctx }: GuardScope) => ({ fires: ctx.context.tests === "pass", why: "the tests did not pass" }),
};
const failedTests = { ...passed, evaluate: () => ({ fires: false, why: "it never does" }) };
const common = { allowedTools: ["Look"], turnCap: 8 };

function flow({ when = passed, others = [] as readonly string[] } = {}) {
  return pipeline({
    id: "flow",
    input,
    context: { tests: "unknown" },
    stages: {
      testing: stage({ ...common, prompt: "Test.", limits: { maxToolCalls: 3 } }),
      deploying: stage({ ...common, prompt: "Deploy." }),
      complete: final("completed"),
    },
    initial: "testing",
    transitions: [
      { from: "testing", on: { event: "RETEST" }, to: "testing" },
      { from: "testing", on: { event: "DEPLOY" }, when, to: "deploying" },
      ...others.map((event) => ({ from: "testing", on: { event }, to: "testing" }) as const),
      { from: "deploying", on: { event: "DONE" }, to: "complete" },
    ],
  });
}

/** Every way to be answered, by stage and turn. */
const SAID: Readonly<Record<string, readonly ScriptedTurn[]>> = {
  testing: [
    { calls: [look(1), getState] },
    { calls: [getState] },
    send("DEPLOY"),
    { calls: [{ tool: "transition", input: { event: "RETEST", data: "12 passed" } }] },
    {
      calls: [
        look(2),
        { tool: "transition", input: { event: "RETEST", data: { tests: "pass", rationale: "12 passed" } } },
      ],
    },
    send("DEPLOY"),
  ],
  deploying: [send("DONE", { url: "https://a.example" })],
};
const say = ({ stage: id, turn }: Heard): ScriptedTurn => SAID[id]?.[turn] ?? {};

test("a run that is suspended at any model call and resumed elsewhere sends what it would have sent", async () => {
  const whole = talker(say);
  const result = await session({ model: whole, tools: [reader] }).run(flow(), task);
  expect(result).toMatchObject({
    status: "completed",
    output: { event: "DONE", data: { url: "https://a.example" } },
    stages: [{ executionId: "testing#1", turns: 5 }, { executionId: "testing#2" }, { executionId: "deploying#1" }],
  });
  expect(whole.heard).toHaveLength(7);
  for (const stopped of whole.heard.keys()) {
    const { clock, first, second } = twoHosts();
    const here = talker((heard) => (here.heard.length > stopped ? new Promise<never>(() => undefined) : say(heard)));
    const handle = session({ model: here, clock, host: first, tools: [reader] }).start(flow(), task);
    await eventually(() => here.heard.length > stopped);
    await handle.suspend();
    const there = talker(say);
    const resumed = session({ model: there, clock, host: second, tools: [reader] });
    expect(await resumed.resume(flow(), handle.runId)).toMatchObject({ status: "completed" });
    expect(there.heard.map(({ messages }) => messages)).toEqual(
      whole.heard.slice(stopped).map(({ messages }) => messages),
    );
  }
});

describe("a recorded run", () => {
  async function recorded() {
    const live = session({ model: talker(say), tools: [reader] });
    const { runId } = await live.run(flow(), task);
    return { runId, journals: await live.host.journal(runId), records: await live.host.records(runId) };
  }

  test("replays as recorded", async () => {
    const { journals } = await recorded();
    expect(await replayRun(flow(), journals, { tools: [reader] })).toMatchObject({
      identical: true,
      status: "completed",
    });
  });

  test("shows in a replay which event the machine now decides about differently", async () => {
    const { journals } = await recorded();
    const { divergence } = await replayRun(flow({ when: failedTests }), journals, { tools: [reader] });
    expect(divergence).toMatchObject({
      executionId: "testing#1",
      turn: 3,
      means: expect.stringContaining("the event"),
    });
  });

  test("shows in a replay that a stage has more events", async () => {
    const { journals } = await recorded();
    const { divergence } = await replayRun(flow({ others: ["SKIP"] }), journals, { tools: [reader] });
    expect(divergence).toMatchObject({ executionId: "testing#1", means: expect.stringContaining("its events") });
  });

  test("has a result for every call of its own tools in its transcript", async () => {
    const { runId, records } = await recorded();
    const entries = transcriptEntries(runId, records).filter(({ executionId }) => executionId !== "deploying#1");
    const results = entries.flatMap((entry) =>
      entry.kind === "result" ? [[entry.turn, entry.callId, entry.ok, entry.output]] : [],
    );
    expect(results).toMatchObject([
      [1, "t1.c0", true, { at: 1 }],
      [1, "t1.c1", true, { state: "testing" }],
      [2, "t2.c0", true, { state: "testing" }],
      [3, "t3.c0", false, { code: "transition_rejected", reason: expect.stringContaining("the tests did not pass") }],
      [4, "t4.c0", false, { code: "completion_schema_invalid" }],
      [5, "t5.c0", true, { at: 2 }],
      [5, "t5.c1", true, { event: "RETEST", data: { tests: "pass", rationale: "12 passed" } }],
      [1, "t1.c0", true, { event: "DEPLOY", data: {} }],
    ]);
  });
});

describe("an interrupt", () => {
  const write = (path: string, content: string) => ({ tool: "Write", input: { file_path: path, content } });
  /** Writing a migration is checked before the work continues. */
  function guarded() {
    const own = { turnCap: 6, allowedTools: ["Look", "Write"] };
    return pipeline({
      id: "guarded",
      input,
      stages: {
        building: stage({ ...own, prompt: "Build." }),
        checking: stage({ ...own, prompt: "Check the migration." }),
        complete: final("completed"),
        failed: final("failed"),
      },
      initial: "building",
      interrupts: { migrations: { files: "db/**", target: "checking" } },
      transitions: [
        { from: "building", on: { event: "DONE" }, to: "complete" },
        { from: "checking", on: { event: "VALID" }, to: backToInterrupted() },
        { from: "checking", on: { event: "FAIL" }, to: "failed" },
      ],
    });
  }
  const build: ScriptedTurn = {
    calls: [
      write("db/001.sql", "create table a;"),
      look(1),
      getState,
      { tool: "transition", input: { event: "DONE" } },
    ],
  };

  test("that was handled is reported to the model that waited, and the rest of its turn was not run", async () => {
    const { root } = tempFolder();
    const model = talker(({ stage: id, turn }) => {
      if (id === "checking") return send("VALID", { checked: "db/001.sql" });
      return turn === 0 ? build : send("DONE");
    });
    const live = session({ model, tools: [reader], cwd: root });
    const result = await live.run(guarded(), task);
    expect(result).toMatchObject({ status: "completed" });
    expect(readFileSync(join(root, "db/001.sql"), "utf8")).toBe("create table a;");
    const back = model.heard.at(-1);
    expect(back?.stage).toBe("building");
    const [results, notice] = back?.messages.slice(-2) ?? [];
    expect(
      results === undefined || back === undefined ? [] : lastResults({ ...back, messages: [results] }),
    ).toMatchObject([{}, { code: "interrupted" }, { code: "interrupted" }, { code: "interrupted" }]);
    const text = JSON.stringify(notice);
    for (const part of ["migrations", "db/001.sql", "checking#1", "You are back in building"])
      expect(text).toContain(part);
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "transition.accepted").map(({ event }) => event)).toEqual(["VALID", "DONE"]);
  });

  test("whose handler leads elsewhere ends the stage that waited: its model is not called again", async () => {
    const { root } = tempFolder();
    const model = talker(({ stage: id }) => (id === "checking" ? send("FAIL") : build));
    const result = await session({ model, tools: [reader], cwd: root }).run(guarded(), task);
    expect(result).toMatchObject({ status: "failed" });
    expect(model.heard.map(({ stage: id }) => id)).toEqual(["building", "checking"]);
  });
});

test("a secret in the context is masked wherever the model reads the context", async () => {
  const secret = "hunter2-hunter2-hunter2";
  const pipe = pipeline({
    id: "secretive",
    input,
    context: { token: secret },
    stages: { work: stage({ ...common, prompt: "Work." }), complete: final("completed") },
    initial: "work",
    transitions: [{ from: "work", on: { event: "DONE" }, to: "complete" }],
  });
  const model = talker(({ turn }) => (turn === 0 ? { calls: [getState] } : send("DONE")));
  const live = session({ model, tools: [reader], env: { TOKEN: secret }, secrets: ["TOKEN"] });
  const { runId, status } = await live.run(pipe, task);
  expect(status).toBe("completed");
  expect(JSON.stringify(model.heard)).toContain("[redacted:TOKEN]");
  expect(JSON.stringify([model.heard, await live.host.records(runId)])).not.toContain(secret);
});

test("another attempt starts with the phase, the feedback and no accepted event", async () => {
  const model = talker(({ turn }) => send("DONE", { turn }));
  const work = stage({
    ...common,
    prompt: "Work.",
    assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: "too early" } : "ok"),
  });
  const pipe = pipeline({
    id: "again",
    input,
    stages: { work, complete: final("completed") },
    initial: "work",
    transitions: [{ from: "work", on: { event: "DONE" }, to: "complete" }],
  });
  const result = await session({ model, tools: [reader] }).run(pipe, task);
  expect(result).toMatchObject({ status: "completed", output: { data: { turn: 1 } }, stages: [{ attempts: 2 }] });
  const [system, first, ...more] = model.heard[1]?.messages ?? [];
  expect(JSON.stringify(system)).toContain("Phase: work");
  expect(JSON.stringify(first)).toContain("too early");
  expect(more).toEqual([]);
});

test("a stage with a completion tool has three turns to complete after its last tool call, too", async () => {
  const model = talker(() => ({ calls: [look(1), look(2)] }));
  const work = stage({
    ...common,
    prompt: "Work.",
    limits: { maxToolCalls: 2 },
    completionTool: "finish",
    completionSchema: z.object({ summary: z.string() }),
  });
  const pipe = pipeline({ id: "capped", input, stages: { work }, initial: "work", next: { work: () => done(null) } });
  const result = await session({ model, tools: [reader] }).run(pipe, task);
  expect(model.heard.map(({ tools }) => tools)).toEqual([["Look", "finish"], ["finish"], ["finish"], ["finish"]]);
  expect(result).toMatchObject({
    status: "failed",
    error: {
      code: "turn_cap",
      message: expect.stringContaining("finish was not called within 3 turns after the last of 2 tool calls"),
    },
  });
});

test.each(["transition", "get_state"])("a session with a tool called %s is refused", async (name) => {
  const live = session({ model: talker(say), tools: [reader, tool(name)] });
  await expect(async () => await live.run(flow(), task)).rejects.toMatchObject({
    code: "session_invalid",
    message: expect.stringContaining(`${name} is also a tool of this session`),
  });
});
