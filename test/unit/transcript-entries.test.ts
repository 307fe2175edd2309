import {
  type Answer,
  done,
  type Interactor,
  type JournalRecord,
  type Json,
  pipeline,
  type RunHost,
  type Stage,
  stage,
} from "@sluice/core";
import { REDACTION_MARKER } from "@sluice/core/runtime";
import { type ScriptedTurn, type TranscriptEntry, transcriptEntries } from "@sluice/stages";
import { builtinTools } from "@sluice/stages/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { session, tool, twoHosts } from "../support/run-kit.ts";
import { type Heard, lastResults, talker } from "../support/talker.ts";

const task = { task: "Fix the parser." };
const finish = (summary: Json = "ok"): ScriptedTurn => ({ calls: [{ tool: "finish", input: { summary } }] });
const call = (name: string, input: Json = {}) => ({ tool: name, input });
const reader = tool("Look", {
  effect: "read",
  execute: async (given) => ({ ok: true, output: `saw ${JSON.stringify(given)}` }),
});
const note = tool("Note");

type Options = Partial<Omit<Parameters<typeof stage>[0], "completionSchema">>;
function worker(options: Options = {}) {
  return stage({
    prompt: "You fix parsers.",
    allowedTools: ["Look"],
    completionTool: "finish",
    turnCap: 12,
    ...options,
    completionSchema: z.object({ summary: z.string() }),
  });
}
function one<O, I>(state: Stage<O, I>) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
}
/** The entries of one run, read as a whole; record by record they are the same. */
async function entriesOf(host: RunHost, runId: string): Promise<readonly TranscriptEntry[]> {
  const records = await host.records(runId);
  const whole = transcriptEntries(runId, records);
  const pieces = records.flatMap((_record, at) => transcriptEntries(runId, records.slice(at, at + 1)));
  expect(pieces).toEqual(whole);
  return whole;
}
/** Without where it stands. */
function parts(entries: readonly TranscriptEntry[]): readonly unknown[] {
  return entries.map(({ runId: _run, executionId: _execution, attempt: _attempt, turn: _turn, ...part }) => part);
}
/** What each turn of an attempt gave the model to read, in the order of its calls. */
function resultsByTurn(entries: readonly TranscriptEntry[]): readonly (readonly Json[])[] {
  const turns = Map.groupBy(entries, ({ turn }) => turn);
  return [...turns.values()].map((turn) => {
    const results = turn.flatMap((entry) => (entry.kind === "result" ? [entry] : []));
    const calls = turn.flatMap((entry) => (entry.kind === "call" ? [entry.callId] : []));
    return calls.flatMap((id) => results.filter(({ callId }) => callId === id).map(({ output }) => output));
  });
}
function answering(answers: readonly Answer[]): Interactor {
  const left = [...answers];
  return { name: "me", answer: async () => left.shift() };
}

describe("the entries of a transcript", () => {
  test("are its texts, its calls with their whole arguments, and what the model read of each", async () => {
    const turns: readonly ScriptedTurn[] = [
      {
        reasoning: "two files",
        text: "I look at both.",
        calls: [call("Look", { path: "a" }), call("Look", { b: [1] })],
      },
      { calls: [call("Note", { text: "granted" }), call("Note", { text: "denied" }), call("Gone", [1, 2])] },
      { calls: [call("AskUser", { question: "Which?" })] },
      { calls: [call("finish", { summary: 1 }), call("Look", { path: "c" })] },
      { text: "   ", calls: [call("finish", { summary: 2 })] },
      finish(),
    ];
    const model = talker(({ turn }) => turns[turn] ?? {});
    const live = session({
      model,
      tools: [reader, note, ...builtinTools().filter(({ name }) => name === "AskUser")],
      interactors: [
        answering([{ kind: "approve" }, { kind: "deny", reason: "not today" }, { kind: "value", value: "blue" }]),
      ],
    });
    const result = await live.run(one(worker({ allowedTools: ["Look", "AskUser"] })), task);
    expect(result).toMatchObject({ status: "completed" });
    const entries = await entriesOf(live.host, result.runId);
    expect(entries[0]).toEqual({
      runId: result.runId,
      executionId: "one#1",
      attempt: 1,
      turn: 1,
      kind: "reasoning",
      text: "two files",
    });
    expect(parts(entries)).toMatchObject([
      { kind: "reasoning", text: "two files" },
      { kind: "text", text: "I look at both." },
      { kind: "call", callId: "t1.c0", tool: "Look", input: { path: "a" } },
      { kind: "call", callId: "t1.c1", tool: "Look", input: { b: [1] } },
      { kind: "result", callId: "t1.c0", ok: true, output: 'saw {"path":"a"}' },
      { kind: "result", callId: "t1.c1", ok: true, output: 'saw {"b":[1]}' },
      { kind: "call", callId: "t2.c0", tool: "Note", input: { text: "granted" } },
      { kind: "call", callId: "t2.c1", tool: "Note", input: { text: "denied" } },
      { kind: "call", callId: "t2.c2", tool: "Gone", input: [1, 2] },
      { kind: "result", callId: "t2.c0", ok: true, output: "Note ran" },
      { kind: "result", callId: "t2.c1", ok: false, output: { code: "tool_call_denied", cause: "denied" } },
      { kind: "result", callId: "t2.c2", ok: false, output: { code: "unknown_tool" } },
      { kind: "call", callId: "t3.c0", tool: "AskUser", input: { question: "Which?" } },
      { kind: "result", callId: "t3.c0", ok: true, output: "blue" },
      { kind: "call", callId: "t4.c0", tool: "finish", input: { summary: 1 } },
      { kind: "call", callId: "t4.c1", tool: "Look", input: { path: "c" } },
      { kind: "result", callId: "t4.c1", ok: true, output: 'saw {"path":"c"}' },
      { kind: "result", callId: "t4.c0", ok: false, output: { code: "completion_schema_invalid" } },
      { kind: "call", callId: "t5.c0", tool: "finish", input: { summary: 2 } },
      { kind: "result", callId: "t5.c0", ok: false, output: { code: "completion_schema_invalid" } },
      { kind: "call", callId: "t6.c0", tool: "finish", input: { summary: "ok" } },
      { kind: "result", callId: "t6.c0", ok: true, output: { summary: "ok" } },
    ]);
    const read = model.heard.slice(1).map(lastResults);
    expect(resultsByTurn(entries).slice(0, -1)).toEqual(read);
  });

  test("show a call whose arguments are broken, or were cut off, without arguments and with the error", async () => {
    const turns: readonly ScriptedTurn[] = [
      {
        calls: [
          { tool: "Look", rawInput: '{"path": ' },
          { tool: "finish", rawInput: "{" },
        ],
      },
      { calls: [call("Look", { path: "a" })], finish: "length" },
      finish(),
    ];
    const live = session({ model: talker(({ turn }) => turns[turn] ?? {}), tools: [reader] });
    const { runId } = await live.run(one(worker()), task);
    expect(parts(await entriesOf(live.host, runId))).toMatchObject([
      { kind: "call", callId: "t1.c0", tool: "Look", input: undefined },
      { kind: "call", callId: "t1.c1", tool: "finish", input: undefined },
      { kind: "result", callId: "t1.c0", ok: false, output: { code: "invalid_tool_input" } },
      { kind: "result", callId: "t1.c1", ok: false, output: { code: "completion_schema_invalid" } },
      { kind: "call", callId: "t2.c0", tool: "Look", input: undefined },
      { kind: "result", callId: "t2.c0", ok: false, output: { code: "truncated_call" } },
      { kind: "call", callId: "t3.c0" },
      { kind: "result", callId: "t3.c0", ok: true },
    ]);
  });

  test("of a completion that its schema changed say what left the stage", async () => {
    const live = session({ model: talker(() => finish("a")), tools: [] });
    const shout = stage({
      prompt: "Shout.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({ summary: z.string().transform((said) => said.toUpperCase()) }),
      turnCap: 2,
    });
    const { runId } = await live.run(one(shout), task);
    expect(parts(await entriesOf(live.host, runId))).toMatchObject([
      { kind: "call", input: { summary: "a" } },
      { kind: "result", ok: true, output: { summary: "A" } },
    ]);
  });

  test("say which attempt and which visit they are of; tries of a turn that failed have none", async () => {
    const live = session({
      model: talker(({ turn, attempt }) =>
        turn === 0 && attempt === 1 ? { errors: [{ status: 429, retryAfterMs: 0 }] } : finish(String(turn)),
      ),
      tools: [],
    });
    const again = worker({
      allowedTools: [],
      assert: (_result, { attempt }) => (attempt === 1 ? { retry: "x" } : "ok"),
    });
    const { runId } = await live.run(one(again), task);
    const entries = await entriesOf(live.host, runId);
    expect(entries.map(({ executionId, attempt, turn, kind }) => [executionId, attempt, turn, kind])).toEqual([
      ["one#1", 1, 1, "call"],
      ["one#1", 1, 1, "result"],
      ["one#1", 2, 1, "call"],
      ["one#1", 2, 1, "result"],
    ]);
  });

  test("of a sibling are in its own run's records, under its own id", async () => {
    const live = session({
      model: talker(({ stage: name }) => ({ text: `I am ${name}`, ...finish(name) })),
      tools: [],
    });
    const sibling = (): ReturnType<typeof worker> => worker({ allowedTools: [] });
    const fork = pipeline({
      id: "fork",
      input: z.object({ task: z.string() }),
      stages: { first: sibling(), a: sibling(), b: sibling(), last: sibling() },
      initial: "first",
      next: {
        first: () => ({ stages: ["a", "b"], execution: "parallel", join: "last" }),
        last: ({ output }) => done(output),
      },
    });
    const { runId, status } = await live.run(fork, task);
    expect(status).toBe("completed");
    const said = async (id: string): Promise<readonly string[]> =>
      (await entriesOf(live.host, id)).flatMap((entry) =>
        entry.kind === "text" ? [`${entry.runId} ${entry.text}`] : [],
      );
    expect(await said(runId)).toEqual([`${runId} I am first`, `${runId} I am last`]);
    expect(await said(`${runId}/fan-1/a`)).toEqual([`${runId}/fan-1/a I am a`]);
    expect(await said(`${runId}/fan-1/b`)).toEqual([`${runId}/fan-1/b I am b`]);
  });

  test("of a resumed run continue where they were, and no entry occurs twice", async () => {
    const { clock, first, second } = twoHosts();
    let reached: (() => void) | undefined;
    const waits = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const say = ({ turn }: Heard): ScriptedTurn =>
      turn < 2 ? { text: `turn ${turn}`, calls: [call("Look", { turn })] } : finish();
    const before = talker((heard) => {
      if (heard.turn < 1) return say(heard);
      reached?.();
      return new Promise(() => undefined);
    });
    const pipe = one(worker());
    const here = session({ model: before, clock, host: first, tools: [reader] });
    const handle = here.start(pipe, task);
    await waits;
    await handle.suspend();
    const early = await entriesOf(second, handle.runId);
    expect(early.map(({ kind, turn }) => [kind, turn])).toEqual([
      ["text", 1],
      ["call", 1],
      ["result", 1],
    ]);
    const seen = (await second.records(handle.runId)).length;
    const there = session({ model: talker(say), clock, host: second, tools: [reader] });
    await there.resume(pipe, handle.runId);
    const late = transcriptEntries(handle.runId, await second.records(handle.runId, seen));
    expect([...early, ...late]).toEqual(await entriesOf(second, handle.runId));
    expect(late.map(({ kind, turn }) => [kind, turn])).toEqual([
      ["text", 2],
      ["call", 2],
      ["result", 2],
      ["call", 3],
      ["result", 3],
    ]);
  });

  test("hold nothing that looks like a secret, wherever it stood", async () => {
    const key = "sk-abcdefghijklmnopqrstuvwx";
    const leaky = tool("Look", {
      effect: "read",
      execute: async () => ({ ok: true, output: { line: `key=${key}`, password: "hunter2" } }),
    });
    const turns: readonly ScriptedTurn[] = [
      {
        reasoning: `use ${key}`,
        text: `I use ${key}`,
        calls: [call("Look", { token: "hunter2", [key]: 1 }), call(key, { a: key })],
      },
      finish(key),
    ];
    const live = session({ model: talker(({ turn }) => turns[turn] ?? {}), tools: [leaky] });
    const { runId } = await live.run(one(worker()), task);
    const recorded = JSON.stringify(await live.host.records(runId));
    expect(recorded).toContain(key);
    expect(recorded).toContain("hunter2");
    const entries = await entriesOf(live.host, runId);
    const shown = JSON.stringify(entries);
    expect(shown).not.toContain(key);
    expect(shown).not.toContain("hunter2");
    expect(entries.every((entry) => JSON.stringify(entry).includes(REDACTION_MARKER))).toBe(true);
  });
});

describe("what the provider ran itself", () => {
  const record = (content: Json): JournalRecord => ({
    seq: 1,
    ordinal: 1,
    stepId: "one#1/a1/turn/2/model",
    phase: "done",
    incarnation: "x",
    value: JSON.stringify({ kind: "reply", reply: { content, calls: [{ index: 0, id: "t2.c0", tool: "Look" }] } }),
    events: "[]",
    hash: "",
  });

  test("is distinguished from our calls, whatever ids it has", () => {
    const own = { type: "tool-call", toolCallId: "t2.c0", toolName: "search", input: { q: 1 }, providerExecuted: true };
    const ours = { type: "tool-call", toolCallId: "t2.c0", toolName: "Look", input: { path: "a" } };
    const result = {
      type: "tool-result",
      toolCallId: "t2.c0",
      toolName: "search",
      output: { type: "error-json", value: "no" },
    };
    const other = { ...result, toolCallId: "unknown" };
    expect(parts(transcriptEntries("r1", [record([own, ours, result, other])]))).toEqual([
      { kind: "call", callId: "t2.p0", tool: "search", input: { q: 1 } },
      { kind: "call", callId: "t2.c0", tool: "Look", input: { path: "a" } },
      { kind: "result", callId: "t2.p0", ok: false, output: "no" },
    ]);
  });
});
