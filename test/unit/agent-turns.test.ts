import { done, pipeline, type RunLimits, type Stage, stage, to } from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { dataOf, eventsOf, eventually, quiet, session, tool, twoHosts, work } from "../support/run-kit.ts";
import { type Heard, lastResults, talker } from "../support/talker.ts";

const input = z.object({ task: z.string() });
const task = { task: "Fix the parser." };
const schema = z.object({ summary: z.string() });
const finish = (summary = "ok"): ScriptedTurn => ({ calls: [{ tool: "finish", input: { summary } }] });
const look = (path = "a"): ScriptedTurn => ({ calls: [{ tool: "Look", input: { path } }] });
const reader = tool("Look", {
  effect: "read",
  execute: async (given) => ({ ok: true, output: `saw ${JSON.stringify(given)}` }),
});

type Options = Omit<Parameters<typeof stage>[0], "prompt" | "completionTool" | "completionSchema" | "turnCap"> & {
  readonly turnCap?: number;
  readonly prompt?: string;
};
function worker(options: Options = {}) {
  return stage({
    prompt: "You fix parsers.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: schema,
    turnCap: 8,
    ...options,
  });
}
function one<O, I>(state: Stage<O, I>, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input,
    limits,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
}
function textOf(message: Heard["messages"][number] | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("");
}

describe("the opening of a transcript", () => {
  test("is the prompt with the contract as system, and the task as the one message", async () => {
    const model = talker(() => finish());
    await session({ model, tools: [reader] }).run(one(worker()), task);
    const [first] = model.heard;
    expect(first?.messages.map((message) => message.role)).toEqual(["system", "user"]);
    const [system, user] = first?.messages ?? [];
    expect(textOf(system)).toMatch(/^You fix parsers\./);
    for (const word of ["finish", "Look", "8 turns"]) expect(textOf(system)).toContain(word);
    expect(textOf(user)).toBe("Task:\nFix the parser.");
    expect(first?.tools).toEqual(["Look", "finish"]);
  });

  test("holds the state's own input as JSON, when a route gives one", async () => {
    const model = talker(() => finish());
    const next = stage({
      prompt: "Go on.",
      inputSchema: z.object({ findings: z.array(z.string()) }),
      allowedTools: [],
      completionTool: "finish",
      completionSchema: schema,
      turnCap: 2,
    });
    const pipe = pipeline({
      id: "p",
      input,
      stages: { start: work(), next },
      initial: "start",
      next: { start: () => to("next", { findings: ["a < b"] }), next: () => done(null) },
    });
    await session({ model }).run(pipe, task);
    const text = textOf(model.heard[0]?.messages[1]);
    expect(text).toContain("Task:\nFix the parser.");
    expect(JSON.parse(text.slice(text.indexOf("{")))).toEqual({ findings: ["a < b"] });
    expect(model.heard[0]?.tools).toEqual(["finish"]);
    expect(textOf(model.heard[0]?.messages[0])).toContain("The only tool of this stage is finish");
  });

  test("of another attempt is fresh, with what assert said and nothing of the attempt before", async () => {
    const model = talker(({ turn }) => finish(`summary ${turn}`));
    const picky = worker({ assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: "too short" } : "ok") });
    const result = await session({ model, tools: [reader] }).run(one(picky), task);
    expect(result).toMatchObject({
      status: "completed",
      output: { summary: "summary 1" },
      stages: [{ attempts: 2, turns: 2 }],
    });
    const [, second] = model.heard;
    expect(second?.messages.map((message) => message.role)).toEqual(["system", "user"]);
    expect(textOf(second?.messages[1])).toContain("too short");
    expect(JSON.stringify(second?.messages)).not.toContain("summary 0");
  });

  test("a prompt that names what is not there fails the state before any model call", async () => {
    const model = talker(() => finish());
    const lost = stage({
      prompt: "After {{ctx.upstream.plan.summary}}",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: schema,
      turnCap: 2,
    });
    const pipe = pipeline({
      id: "p",
      input,
      stages: { plan: work(), lost },
      initial: "lost",
      next: { lost: () => to("plan"), plan: () => done(null) },
    });
    expect(await session({ model }).run(pipe, task)).toMatchObject({
      status: "failed",
      error: { code: "hook", message: expect.stringContaining("ctx.upstream.plan") },
    });
    expect(model.heard).toEqual([]);
  });
});

describe("what the model is offered", () => {
  const tools = [reader, tool("Write2")];
  test.each([
    ["the envelope's tools", worker({ allowedTools: ["Look"] }), ["Look", "finish"]],
    ["nothing but its completion tool with an empty envelope", worker({ allowedTools: [] }), ["finish"]],
  ])("%s", async (_what, state, names) => {
    const model = talker(() => finish());
    await session({ model, tools }).run(one(state), task);
    expect(model.heard[0]?.tools).toEqual(names);
  });

  test("all tools of the session with visibility session; the gate is the same", async () => {
    const model = talker(({ turn }) => (turn === 0 ? { calls: [{ tool: "Write2", input: {} }] } : finish()));
    await session({ model, tools }).run(one(worker({ visibility: "session" })), task);
    expect(model.heard[0]?.tools).toEqual(expect.arrayContaining(["Look", "Write2", "Edit", "Bash", "finish"]));
    expect(lastResults(model.heard[1] ?? noHeard)).toMatchObject([
      { code: "tool_call_denied", cause: "no_interactor" },
    ]);
  });

  test("all tools of the session in a stage without an envelope", async () => {
    const model = talker(() => finish());
    const { allowedTools: _none, ...open } = { allowedTools: undefined };
    await session({ model, tools }).run(
      one(stage({ ...open, prompt: "Work.", completionTool: "finish", completionSchema: schema, turnCap: 2 })),
      task,
    );
    expect(model.heard[0]?.tools).toEqual(expect.arrayContaining(["Look", "Write2", "Edit", "Bash", "finish"]));
  });

  test("only the completion tool on the last turn", async () => {
    const model = talker(({ turn }) => look(String(turn)));
    const result = await session({ model, tools }).run(one(worker({ turnCap: 3 })), task);
    expect(model.heard.map((heard) => heard.tools)).toEqual([["Look", "finish"], ["Look", "finish"], ["finish"]]);
    expect(result).toMatchObject({ status: "failed", error: { code: "turn_cap" }, stages: [{ turns: 3 }] });
  });
});

const noHeard: Heard = { stage: "", turn: 0, attempt: 0, messages: [], tools: [], maxOutputTokens: undefined };

describe("calls that repeat", () => {
  const turnsOf = (calls: readonly ScriptedTurn[]) => talker(({ turn }) => calls[turn] ?? finish());

  test("the third identical call in a row does not run, and its result says so; another call in between starts the count again", async () => {
    let ran = 0;
    const counted = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: `run ${++ran}` }) });
    const model = turnsOf([look(), look(), look(), look("b"), look(), look()]);
    await session({ model, tools: [counted] }).run(one(worker()), task);
    expect(model.heard.slice(1).map(lastResults)).toMatchObject([
      ["run 1"],
      ["run 2"],
      [{ code: "repeated_call" }],
      ["run 3"],
      ["run 4"],
      ["run 5"],
    ]);
  });

  test("the sixth fails the stage with code tool; what comes after it in its turn does not run", async () => {
    const ran: string[] = [];
    const write = tool("Write2", { execute: async () => ({ ok: true, output: ran.push("Write2") }) });
    const six = {
      calls: [
        ...Array.from({ length: 6 }, () => ({ tool: "Look", input: { path: "a" } })),
        { tool: "Write2", input: {} },
      ],
    };
    const model = turnsOf([six]);
    const live = session({ model, tools: [reader, write] });
    const result = await live.run(one(worker({ allowedTools: ["Look", "Write2"] })), task);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "tool", message: expect.stringContaining("six times") },
    });
    expect(ran).toEqual([]);
    expect(dataOf(await eventsOf(live.host, result.runId), "call.started")).toHaveLength(2);
  });

  test("arguments in another order of keys are the same call", async () => {
    const model = turnsOf(
      ['{"a":1,"b":2}', '{"b":2,"a":1}', '{ "a": 1.0, "b": 2 }'].map((rawInput) => ({
        calls: [{ tool: "Look", rawInput }],
      })),
    );
    await session({ model, tools: [reader] }).run(one(worker()), task);
    expect(lastResults(model.heard[3] ?? noHeard)).toMatchObject([{ code: "repeated_call" }]);
  });

  test("arguments that cannot be read repeat only when they are the same text", async () => {
    const raw = ['{"path":"a', '{"path":"b', '{"path":"c', '{"path":"c', '{"path":"c'];
    const model = turnsOf(raw.map((rawInput) => ({ calls: [{ tool: "Look", rawInput }] })));
    await session({ model, tools: [reader] }).run(one(worker()), task);
    expect(model.heard.slice(1).map((heard) => Object(lastResults(heard)[0]).code)).toEqual([
      "invalid_tool_input",
      "invalid_tool_input",
      "invalid_tool_input",
      "invalid_tool_input",
      "repeated_call",
    ]);
  });
});

describe("the completion", () => {
  test("beside other calls is judged when those have run: its schema may look at what they did", async () => {
    const files = new Map([["a.ts", "old"]]);
    const edit = tool("Change", {
      execute: async () => {
        files.set("a.ts", "new");
        return { ok: true, output: "changed" };
      },
    });
    const seen: unknown[] = [];
    const changed = z.object({ summary: z.string() }).refine(() => {
      seen.push(files.get("a.ts"));
      return files.get("a.ts") === "new";
    }, "a.ts was not changed");
    const model = talker(({ turn }) =>
      turn === 0
        ? {
            calls: [
              { tool: "finish", input: { summary: "done" } },
              { tool: "Change", input: {} },
            ],
          }
        : finish("again"),
    );
    const state = stage({
      prompt: "Work.",
      allowedTools: ["Change"],
      completionTool: "finish",
      completionSchema: changed,
      turnCap: 4,
    });
    const live = session({ model, tools: [edit] });
    const result = await live.run(one(state), task);
    expect(result).toMatchObject({ status: "completed", output: { summary: "done" }, stages: [{ turns: 1 }] });
    expect(seen).toEqual(["new"]);
    const types = (await eventsOf(live.host, result.runId)).map((event) => event.type);
    expect(types.indexOf("call.finished")).toBeLessThan(types.indexOf("completion.accepted"));
  });

  test("that a schema throws on, or makes something else of than JSON, is refused and the stage continues", async () => {
    const broken = z.object({ summary: z.string() }).transform(({ summary }) => {
      if (summary === "throw") throw new Error("a bug in a schema");
      return summary === "date" ? { at: new Date(0) } : { summary };
    });
    const model = talker(({ turn }) => finish(["throw", "date", "fine"][turn]));
    const state = stage({
      prompt: "Work.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: broken,
      turnCap: 4,
    });
    const result = await session({ model }).run(one(state), task);
    expect(result).toMatchObject({ status: "completed", output: { summary: "fine" }, stages: [{ turns: 3 }] });
    for (const heard of model.heard.slice(1))
      expect(lastResults(heard)).toMatchObject([{ code: "completion_schema_invalid" }]);
  });

  test("of another stage, or of a name that is almost right, is an unknown tool", async () => {
    const model = talker(({ turn }) =>
      turn === 0 ? { calls: [{ tool: "Finish", input: { summary: "x" } }] } : finish(),
    );
    await session({ model, tools: [reader] }).run(one(worker()), task);
    expect(lastResults(model.heard[1] ?? noHeard)).toMatchObject([{ code: "unknown_tool", completionTool: "finish" }]);
  });
});

describe("a model that fails", () => {
  /** Runs to the end and says how long each wait is, by turning the clock until the model is called again. */
  async function backoffs(turns: readonly ScriptedTurn[]) {
    const model = talker(({ turn }) => turns[turn] ?? finish());
    const live = session({ model, tools: [reader] });
    const handle = live.start(one(worker()), task);
    let over = false;
    void handle.then(() => {
      over = true;
    });
    const waits: number[] = [];
    for (;;) {
      await quiet();
      if (over) break;
      const calls = model.heard.length;
      let ms = 0;
      while (model.heard.length === calls && !over) {
        live.clock.turn(500);
        ms += 500;
        await quiet();
        if (ms > 1_200_000) throw new Error("nothing happens");
      }
      waits.push(ms);
    }
    return { result: await handle, waits, model, events: await eventsOf(live.host, handle.runId) };
  }
  const overloaded = { status: 529 };

  test("for a moment is asked four times, a second, two and four later", async () => {
    const { result, waits, model, events } = await backoffs([
      { errors: [overloaded, overloaded, overloaded], ...finish() },
    ]);
    expect(result).toMatchObject({ status: "completed", stages: [{ turns: 1 }] });
    expect(waits).toEqual([1_000, 2_000, 4_000]);
    expect(model.heard.map(({ turn, attempt }) => [turn, attempt])).toEqual([
      [0, 1],
      [0, 2],
      [0, 3],
      [0, 4],
    ]);
    expect(new Set(model.heard.map(({ messages }) => JSON.stringify(messages))).size).toBe(1);
    expect(dataOf(events, "model.retried").map((data) => data.waitMs)).toEqual([1_000, 2_000, 4_000]);
    expect(dataOf(events, "turn.started").map((data) => data.try)).toEqual([1, 2, 3, 4]);
  });

  test("for five minutes fails its stage with code model, after waits of at most a minute", async () => {
    const { result, waits } = await backoffs([{ errors: Array.from({ length: 99 }, () => overloaded), ...finish() }]);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "model", message: expect.stringContaining("11 tries") },
      stages: [{ detail: { status: 529 } }],
    });
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 57].map((seconds) => seconds * 1_000));
  });

  test("and says when to come back is obeyed, within five minutes", async () => {
    const { waits } = await backoffs([
      {
        errors: [
          { status: 429, retryAfterMs: 7_500 },
          { status: 429, retryAfterMs: 200_000 },
          { status: 429, retryAfterMs: 100_000 },
        ],
        ...finish(),
      },
    ]);
    expect(waits).toEqual([7_500, 200_000]);
  });

  test("for good is not asked again", async () => {
    const { result, waits } = await backoffs([
      { errors: [{ status: 400, message: "temperature: too hot" }], ...finish() },
    ]);
    expect(result).toMatchObject({ status: "failed", error: { code: "model" } });
    expect(waits).toEqual([]);
  });

  test("because the transcript is too long fails the stage with context_overflow, which has a route", async () => {
    const { result } = await backoffs([
      { errors: [{ status: 400, message: "prompt is too long: 214310 tokens" }], ...finish() },
    ]);
    expect(result).toMatchObject({ status: "failed", error: { code: "context_overflow" } });
  });

  test("gives its place away while it waits to be asked again", async () => {
    const model = talker(({ stage: name, attempt }) =>
      name === "one" && attempt === 1 ? { errors: [overloaded] } : finish(),
    );
    const live = session({ model, tools: [reader], maxParallel: 1 });
    const waiting = live.start(one(worker()), task);
    await eventually(() => live.clock.waiting() === 1);
    const other = pipeline({
      id: "other",
      input,
      stages: { two: worker() },
      initial: "two",
      next: { two: () => done("other") },
    });
    expect(await live.run(other, task)).toMatchObject({ status: "completed" });
    live.clock.turn(1_000);
    expect(await waiting).toMatchObject({ status: "completed" });
  });

  test("while it waits to be asked again, a run that is resumed continues with that wait, and counts its tries on", async () => {
    const { clock, first, second } = twoHosts();
    const model = talker(({ attempt }) => (attempt < 3 ? { errors: [overloaded, overloaded] } : finish()));
    const pipe = one(worker());
    const here = session({ model, clock, host: first, tools: [reader] });
    const handle = here.start(pipe, task);
    await eventually(() => clock.waiting() === 1);
    await handle.suspend();
    clock.turn(400);
    const there = session({ model, clock, host: second, tools: [reader] });
    const resumed = there.resume(pipe, handle.runId);
    await eventually(() => clock.waiting() === 1);
    expect(model.heard.map(({ attempt }) => attempt)).toEqual([1]);
    clock.turn(600);
    await eventually(() => clock.waiting() === 1 && model.heard.length === 2);
    clock.turn(2_000);
    expect(await resumed).toMatchObject({ status: "completed" });
    expect(model.heard.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });
});

test("a resumed stage sends the transcript it had: no finished turn or call is asked for again", async () => {
  const { clock, first, second } = twoHosts();
  let ran = 0;
  const counted = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: `run ${++ran}` }) });
  const gate: { open: () => void; opened: Promise<void> } = { open: () => undefined, opened: Promise.resolve() };
  gate.opened = new Promise((resolve) => {
    gate.open = resolve;
  });
  const say = ({ turn }: Heard): ScriptedTurn =>
    turn < 2 ? { text: `thinking ${turn}`, ...look(String(turn)) } : finish();
  const before = talker(async (heard) => {
    if (heard.turn === 2) await gate.opened;
    return say(heard);
  });
  const pipe = one(worker());
  const here = session({ model: before, clock, host: first, tools: [counted] });
  const handle = here.start(pipe, task);
  await eventually(() => before.heard.length === 3);
  await handle.suspend();
  gate.open();
  const after = talker(say);
  const there = session({ model: after, clock, host: second, tools: [counted] });
  expect(await there.resume(pipe, handle.runId)).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });
  expect(after.heard.map(({ turn }) => turn)).toEqual([2]);
  expect(after.heard[0]?.messages).toEqual(before.heard[2]?.messages);
  expect(ran).toBe(2);
});

test("a script continues over the visits and attempts of its stage", async () => {
  const model = talker(({ turn }) => finish(String(turn)));
  const state = worker({
    assert: (_result, ctx) => (ctx.visit === 1 && ctx.attempt === 1 ? { retry: "once more" } : "ok"),
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }, ctx) => (ctx.visit < 3 ? to("one") : done(output)) },
  });
  const result = await session({ model, tools: [reader] }).run(pipe, task);
  expect(result).toMatchObject({ status: "completed", output: { summary: "3" } });
  expect(model.heard.map(({ turn }) => turn)).toEqual([0, 1, 2, 3]);
});

test("an answer that says nothing at all gets a nudge, and no empty message stands in the transcript", async () => {
  const model = talker(({ turn }) => (turn < 2 ? {} : finish()));
  const result = await session({ model, tools: [reader] }).run(one(worker({ turnCap: 4 })), task);
  expect(result).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });
  const roles = model.heard.at(-1)?.messages.map((message) => message.role);
  expect(roles).toEqual(["system", "user", "user", "user"]);
  expect(textOf(model.heard[2]?.messages.at(-1))).toContain("finish");
});
