import { done, fail, fanOut, type Json, pipeline, stage, to } from "@sluice/core";
import { createSecretFilter } from "@sluice/core/runtime";
import type { ScriptedTurn } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { LiveText } from "../../packages/stages/src/secrets/cut-text.ts";
import {
  caller,
  completed,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  session,
  type TestSession,
  tool,
  work,
} from "../support/run-kit.ts";
import { finish, modelOf, part } from "../support/stream-model.ts";
import { talker } from "../support/talker.ts";

// No pattern knows this one: only its value gives it away.
const key = "K3y-0f-the-c4stle-Zq81";
const env = { CASTLE_TOKEN: key };
const escaped = Array.from(key)
  .map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`)
  .join("");

const input = z.object({ task: z.string() });
const task = { task: "t" };

/** Everything a run leaves, as one text; no part of a key of half its length may be in it. */
async function traces(live: TestSession, runId: string, more: unknown): Promise<string> {
  const events = await eventsOf(live.host, runId);
  return JSON.stringify([events, await live.host.journal(runId), await live.host.get(runId), more]);
}
function expectNoKey(text: string): void {
  // Escapes inside JSON inside JSON are undone first.
  const plain = text.replaceAll(/\\+u([0-9a-f]{4})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const half = Math.ceil(key.length / 2);
  for (let at = 0; at + half <= key.length; at += 1) {
    const part = key.slice(at, at + half);
    expect(
      plain.includes(part),
      `"${part}" is in ${plain.slice(Math.max(0, plain.indexOf(part) - 200), plain.indexOf(part) + 100)}`,
    ).toBe(false);
  }
}

test("a key in what a model says, asks for and completes with is nowhere in requests, events, results or journal", async () => {
  const turns: readonly ScriptedTurn[] = [
    {
      reasoning: `the key is ${key}`,
      text: `I found ${key}.`,
      calls: [{ tool: "Echo", input: { text: key, [key]: [key] } }],
    },
    {
      calls: [
        { tool: "Echo", rawInput: `{"text":"${escaped}"}` },
        { tool: "Echo", rawInput: `{"text":"${key}` },
        { tool: "Echo", rawInput: key },
        { tool: "Echo", rawInput: `{"text":"${escaped}` },
        { tool: key, input: {} },
      ],
    },
    { calls: [{ tool: "Outside", input: { text: key } }] },
    { calls: [{ tool: "finish", input: { summary: 1, [key]: key } }] },
    { calls: [{ tool: "finish", input: { summary: `use ${key}` } }] },
  ];
  const model = talker(({ turn }) => turns[turn] ?? {});
  const given: Json[] = [];
  const live = session({
    model,
    env,
    interactors: [
      {
        name: "me",
        answer: async ({ body }) => {
          given.push(body);
          return { kind: "deny", reason: `not with ${key}` };
        },
      },
    ],
    tools: [
      tool("Echo", {
        execute: async (args) => {
          given.push(args);
          return { ok: true, output: args };
        },
      }),
      tool("Outside"),
    ],
  });
  const state = stage({
    prompt: "Work.",
    allowedTools: ["Echo"],
    completionTool: "finish",
    completionSchema: z.object({ summary: z.string() }),
    turnCap: 9,
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
  const handle = live.start(pipe, { task: `deploy with ${key}` });
  const live_: unknown[] = [];
  handle.onLive((chunk) => live_.push(chunk));
  const result = await handle;
  expect(result).toMatchObject({ status: "completed", output: { summary: "use [redacted:CASTLE_TOKEN]" } });
  expectNoKey(await traces(live, handle.runId, [result, model.heard, given, live_]));
  // The tools ran with what stands in the transcript: the digest, the gate and the tool saw the same.
  expect(given).toContainEqual({ text: "[redacted:CASTLE_TOKEN]" });
});

test("a key in what tools return, note, report or throw, and in what people answer, is replaced on its way in", async () => {
  const live = session({
    model: noModel,
    env,
    interactors: [{ name: "me", answer: async () => ({ kind: "value", value: `it is ${key}` }) }],
    tools: [
      tool("Says", {
        execute: async () => ({
          ok: true,
          output: { text: [key] },
          full: `all: ${key}`,
          notes: { [key]: key },
          facts: { [key]: key },
        }),
      }),
      tool("Throws", { execute: () => Promise.reject(new Error(`401 for ${key}`)) }),
      tool("Long", { execute: async () => ({ ok: true, output: `${"x".repeat(120_000)}${key}` }) }),
      tool("Knows", {
        subjects: () => {
          throw new Error(`cannot open ${key}`);
        },
      }),
      tool("Vetoed"),
      tool("Guesses", { subjects: () => [{ kind: "opaque", reason: `it reads ${key}` }] }),
    ],
  });
  const answers: Json[] = [];
  const state = work({
    allowedTools: ["Says", "Throws", "Long", "Knows", "Guesses", "Vetoed", "AskUser"],
    onCall: ({ tool: name }) => (name === "Vetoed" ? { veto: `not ${key}` } : undefined),
    act: async (scope) => {
      const call = caller(scope);
      for (const name of ["Says", "Throws", "Long", "Knows", "Guesses", "Vetoed"]) answers.push(await call(name));
      answers.push(await call("AskUser", { question: "What is it?" }));
      return completed(answers);
    },
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
  const result = await live.run(pipe, task);
  expect(result.status).toBe("completed");
  expect(answers.at(-1)).toBe("it is [redacted:CASTLE_TOKEN]");
  expectNoKey(await traces(live, result.runId, [result, answers]));
});

test("a key in an answer from another process is not in the run's records", async () => {
  const live = session({ model: noModel, env, wait: true, tools: [tool("Deploy")] });
  const state = work({ allowedTools: [], act: async (scope) => completed(await caller(scope)("Deploy")) });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
  const handle = live.start(pipe, task);
  await eventually(async () => (await live.host.requests()).length === 1);
  const payload = { kind: "deny", reason: `because of ${key}` };
  await live.host.signal(handle.runId, { name: "request/one#1/a1/t1.c0", payload, by: "me" });
  const result = await handle;
  expectNoKey(await traces(live, handle.runId, result));
});

test("a key in what hooks, prompts and routes return or throw is replaced, in runs and in their siblings", async () => {
  const model = talker(() => ({ calls: [{ tool: "finish", input: {} }] }));
  const live = session({ model, env });
  const seen: Json[] = [];
  const asked = stage({
    setup: () => ({ found: key }),
    prompt: (ctx) => `Use ${key} and ${JSON.stringify(ctx.setup)}.`,
    allowedTools: [],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 2,
    assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: `mind ${key}` } : "ok"),
    exit: (_result, ctx) => void seen.push(json(ctx)),
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      asked,
      a: work({
        act: ({ ctx }) => {
          seen.push(json(ctx));
          return completed(`from a: ${key}`);
        },
      }),
      b: work({ act: () => failed(`b fell over ${key}`) }),
      join: work({
        setup: () => {
          throw new Error(`no ${key}`);
        },
      }),
      last: work({ assert: () => ({ fail: `not with ${key}` }), exit: () => Promise.reject(new Error(key)) }),
    },
    initial: "asked",
    next: {
      asked: () => fanOut([to("a", { key }), "b"], { join: "join", input: { key }, onFailure: "settle" }),
      join: {
        completed: () => done(null),
        failed: (result) => to("last", { why: `${result.message} ${key}` }, { context: { last: key } }),
      },
      last: { completed: () => done(null), failed: (result) => fail(`${result.message}; ${key}`) },
    },
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("[redacted:CASTLE_TOKEN]") },
  });
  expectNoKey(await traces(live, result.runId, [result, model.heard, seen]));
});

test("a route's output holds no key either", async () => {
  const live = session({ model: noModel, env });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: work() },
    initial: "one",
    next: { one: () => done({ [key]: key }) },
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({
    status: "completed",
    output: { "[redacted:CASTLE_TOKEN]": "[redacted:CASTLE_TOKEN]" },
  });
  expectNoKey(await traces(live, result.runId, result));
});

test("what the schema of the first input adds holds no key either", async () => {
  const inputs: Json[] = [];
  const first = work({
    inputSchema: z.any().transform(() => ({ [key]: key })),
    act: ({ ctx }) => {
      inputs.push(json(ctx.input));
      return completed(null);
    },
  });
  const pipe = pipeline({ id: "p", input, stages: { first }, initial: "first", next: { first: () => done(null) } });
  const live = session({ model: noModel, env });
  const result = await live.run(pipe, task);
  expect(inputs).toEqual([{ "[redacted:CASTLE_TOKEN]": "[redacted:CASTLE_TOKEN]" }]);
  expectNoKey(await traces(live, result.runId, result));
});

test("a model's failure that repeats a key of the session does not", async () => {
  const model = talker(() => ({ errors: [{ status: 400, message: `bad header: ${key}` }] }));
  const state = stage({
    prompt: "p",
    allowedTools: [],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 2,
  });
  const live = session({ model, env });
  const result = await live.run(
    pipeline({ id: "p", input, stages: { one: state }, initial: "one", next: { one: () => done(1) } }),
    task,
  );
  expect(result).toMatchObject({ status: "failed", error: { code: "model" } });
  expectNoKey(await traces(live, result.runId, result));
});

test("a message that cannot be read is answered without quoting the key it held", async () => {
  const model = talker(({ turn }) => ({
    calls: [turn === 0 ? { tool: "finish", rawInput: key } : { tool: "finish", input: {} }],
  }));
  const state = stage({
    prompt: "p",
    allowedTools: [],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 3,
  });
  const live = session({ model, env });
  const result = await live.run(
    pipeline({ id: "p", input, stages: { one: state }, initial: "one", next: { one: () => done(1) } }),
    task,
  );
  expect(result.status).toBe("completed");
  expect(await traces(live, result.runId, [result, model.heard])).not.toContain(key.slice(0, 6));
});

describe("streamed text", () => {
  const long = "K3y-0f-the-c4stle-Zq81-and-more-of-it";
  const secrets = createSecretFilter(
    new Map([
      [long, "LONG"],
      [key, "KEY"],
    ]),
  );
  /** What is shown of a text that comes in pieces. */
  function shown(pieces: readonly string[], ending: "end" | "drop" = "end"): string[] {
    const out: string[] = [];
    const text = new LiveText(secrets, (piece) => out.push(piece));
    for (const piece of pieces) text.push(piece);
    text[ending]();
    return out;
  }
  const texts = [
    `a ${key} b ${long} c`,
    key,
    long,
    `${key}${long}`,
    `${long}${key}x`,
    "nothing to hide",
    `K3y-0f-the ${key.slice(1)}`,
  ];

  test.each(texts)(
    "shows %j as the transcript has it, however it is cut, and no part of a secret on the way",
    (whole) => {
      for (let size = 1; size <= whole.length; size += 1) {
        const pieces = whole.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
        const out = shown(pieces);
        expect(out.join("")).toBe(secrets.text(whole));
      }
    },
  );

  test("that is cut inside a secret shows nothing of it", () => {
    for (let length = 1; length < long.length; length += 1) {
      const out = shown([...`see ${long.slice(0, length)}`], "drop").join("");
      expect("see ".startsWith(out) || out === "see ").toBe(true);
    }
  });

  test("of a run comes out in order, and a secret that spans its pieces does not come at all", async () => {
    const model = talker(() => ({
      text: `first ${key} last`,
      reasoning: `hm ${key}`,
      calls: [{ tool: "finish", input: {} }],
    }));
    const state = stage({
      prompt: "p",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 2,
    });
    const live = session({ model, env });
    const handle = live.start(
      pipeline({ id: "p", input, stages: { one: state }, initial: "one", next: { one: () => done(1) } }),
      task,
    );
    const heard = new Map<string, string>();
    handle.onLive(({ channel, chunk }) => {
      heard.set(channel, (heard.get(channel) ?? "") + z.object({ text: z.string() }).parse(chunk).text);
    });
    await handle;
    expect(Object.fromEntries(heard)).toEqual({
      text: "first [redacted:CASTLE_TOKEN] last",
      reasoning: "hm [redacted:CASTLE_TOKEN]",
    });
  });

  test("of an answer that was cut inside a key is not shown to its end, and the next try begins again", async () => {
    const half = [
      part({ type: "text-start", id: "0" }),
      part({ type: "text-delta", id: "0", delta: `see ${key.slice(0, 15)}` }),
    ];
    const whole = [
      part({ type: "text-start", id: "0" }),
      part({ type: "text-delta", id: "0", delta: `see ${key}` }),
      part({ type: "text-end", id: "0" }),
      part({ type: "tool-call", toolCallId: "1", toolName: "finish", input: "{}" }),
      finish("tool-calls"),
    ];
    const model = {
      id: "cut",
      secrets: [],
      at: ({ attempt }: { attempt: number }) => modelOf(attempt === 1 ? half : whole),
    };
    const state = stage({
      prompt: "p",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 2,
    });
    const live = session({ model, env });
    const handle = live.start(
      pipeline({ id: "p", input, stages: { one: state }, initial: "one", next: { one: () => done(1) } }),
      task,
    );
    const tries = new Map<number, string>();
    handle.onLive(({ chunk }) => {
      const piece = z.object({ try: z.number(), text: z.string() }).parse(chunk);
      tries.set(piece.try, (tries.get(piece.try) ?? "") + piece.text);
    });
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(1_000);
    expect(await handle).toMatchObject({ status: "completed" });
    expect(tries.get(2)).toBe("see [redacted:CASTLE_TOKEN]");
    expect(JSON.stringify([...tries])).not.toContain(key.slice(0, 6));
  });
});

test("an argument that only its name gives away stands in no event, not in the one line about its call either", async () => {
  const word = "tulip-42-window";
  const turns: readonly ScriptedTurn[] = [
    { calls: [{ tool: "Echo", input: { text: "x", password: word } }] },
    { calls: [{ tool: "Outside", input: { nested: { apiKey: word } } }] },
    { calls: [{ tool: "finish", input: { summary: "done" } }] },
  ];
  const asked: Json[] = [];
  const live = session({
    model: talker(({ turn }) => turns[turn] ?? {}),
    interactors: [
      {
        name: "me",
        answer: async ({ body }) => {
          asked.push(body);
          return { kind: "approve" };
        },
      },
    ],
    tools: [tool("Echo"), tool("Outside")],
  });
  const state = stage({
    prompt: "Work.",
    allowedTools: ["Echo"],
    completionTool: "finish",
    completionSchema: z.object({ summary: z.string() }),
    turnCap: 9,
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
  const handle = live.start(pipe, task);
  expect((await handle).status).toBe("completed");
  const events = await eventsOf(live.host, handle.runId);
  expect(JSON.stringify(events)).not.toContain(word);
  expect(events.filter(({ type }) => type === "call.decided")).toHaveLength(2);
  // The person who answers decides about what would run, and is shown it.
  expect(JSON.stringify(asked)).toContain(word);
});

test("a key that the schema of the initial state adds is nowhere in requests, events, results or journal", async () => {
  const live = session({ model: noModel, env });
  const withKey = z.object({ task: z.string() }).transform((given) => ({ ...given, token: key }));
  const made = pipeline({
    id: "p",
    input,
    stages: { one: work({ inputSchema: withKey, act: ({ ctx }) => completed(json(ctx.input)) }) },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
  const result = await live.run(made, task);
  expect(result).toMatchObject({ status: "completed", output: { task: "t", token: "[redacted:CASTLE_TOKEN]" } });
  expectNoKey(await traces(live, result.runId, result));
});
