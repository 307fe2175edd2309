import { done, fanOut, type Json, pipeline, type RunLimits, stage, to } from "@sluice/core";
import { forkPointsOf } from "@sluice/core/host";
import { REDACTION_MARKER } from "@sluice/core/runtime";
import { type ScriptedTurn, sendMessage, subPipeline, transcriptEntries } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { dataOf, eventsOf, eventually, session, tool, twoHosts } from "../support/run-kit.ts";
import { type Heard, type Talker, talker } from "../support/talker.ts";

const task = { task: "Fix the parser." };
const finish = (summary: Json = "ok"): ScriptedTurn => ({ calls: [{ tool: "finish", input: { summary } }] });
const look: ScriptedTurn = { calls: [{ tool: "Look", input: {} }] };
const overloaded = { status: 529, retryAfterMs: 0 };
const reader = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "seen" }) });

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
function one(options: Options = {}, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    limits,
    stages: { one: worker(options) },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
}
/** The roles and texts of a transcript after its opening; what people said without the words around it. */
function heardBy({ messages }: Heard): readonly string[] {
  return messages.slice(2).map(({ role, content }) => {
    const texts =
      typeof content === "string" ? [content] : content.map((part) => (part.type === "text" ? part.text : ""));
    const said = /^Message from a user who is watching this run:\n([\s\S]*)$/.exec(texts.join(""));
    return said === null ? role : `says ${said[1] ?? ""}`;
  });
}
/** Says what `say` says, and sends messages while it thinks: what `during` gives for the call, counted from 0. */
function chatted(say: (heard: Heard) => ScriptedTurn, during: (call: number) => Promise<unknown> | undefined): Talker {
  let call = 0;
  return talker(async (heard) => {
    const sent = during(call);
    call += 1;
    await sent;
    return say(heard);
  });
}

describe("a message to a run", () => {
  test("is read by its next model call, after the results, and stands in the transcript once", async () => {
    const model: Talker = chatted(
      ({ turn }) => (turn < 3 ? look : finish()),
      (call) => (call === 1 ? sendMessage(live.host, handle.runId, " Mind the tabs. ", "me") : undefined),
    );
    const live = session({ model, tools: [reader] });
    const handle = live.start(one(), task);
    expect(await handle).toMatchObject({ status: "completed" });
    expect(model.heard.map(heardBy)).toEqual([
      [],
      ["assistant", "tool"],
      ["assistant", "tool", "assistant", "tool", "says Mind the tabs."],
      ["assistant", "tool", "assistant", "tool", "says Mind the tabs.", "assistant", "tool"],
    ]);
    const events = await eventsOf(live.host, handle.runId);
    expect(events.find(({ type }) => type === "message.received")).toMatchObject({ executionId: "one#1", attempt: 1 });
    expect(dataOf(events, "message.received")).toEqual([
      { turn: 3, by: "me", text: "Mind the tabs.", sentAt: live.clock.now() },
    ]);
    const entries = transcriptEntries(handle.runId, await live.host.records(handle.runId));
    const [said] = entries.filter(({ kind }) => kind === "message");
    expect(said).toMatchObject({ kind: "message", turn: 3, by: "me", text: "Mind the tabs." });
    expect(entries.filter(({ turn }) => turn === 3).map(({ kind }) => kind)).toEqual(["message", "call", "result"]);
  });

  test("that comes before the first call follows the opening; several stand in the order they came", async () => {
    const model = talker(() => finish());
    const live = session({ model, tools: [reader] });
    const greeted = one({
      setup: async ({ runId }) => {
        for (const text of ["first", "second", "third"]) await sendMessage(live.host, runId, text, "me");
        return null;
      },
    });
    const { runId } = await live.run(greeted, task);
    expect(model.heard.map(heardBy)).toEqual([["says first", "says second", "says third"]]);
    // Nothing of its own: enter, the turn's two, leave.
    const records = await live.host.records(runId);
    expect(records.filter(({ phase }) => phase !== "lifecycle")).toHaveLength(4);
  });

  test("stays where it is while its turn is tried again, and what comes meanwhile follows", async () => {
    const model = chatted(
      ({ attempt }) => (attempt < 3 ? { errors: [overloaded, overloaded] } : finish()),
      (call) => (call < 3 ? sendMessage(live.host, handle.runId, String(call), "me") : undefined),
    );
    const live = session({ model, tools: [reader] });
    const handle = live.start(one(), task);
    expect(await handle).toMatchObject({ status: "completed" });
    expect(model.heard.map(heardBy)).toEqual([[], ["says 0"], ["says 0", "says 1"]]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "message.received").map(({ text }) => text)).toEqual(["0", "1"]);
  });

  test("that a stage's last call came too early for goes to the next attempt, or the next stage", async () => {
    const model = chatted(
      () => finish(),
      (call) => sendMessage(live.host, handle.runId, String(call), "me"),
    );
    const again = worker({ assert: (_result, { attempt }) => (attempt === 1 ? { retry: "again" } : "ok") });
    const pipe = pipeline({
      id: "two",
      input: z.object({ task: z.string() }),
      stages: { first: again, second: worker() },
      initial: "first",
      next: { first: () => to("second"), second: ({ output }) => done(output) },
    });
    const live = session({ model, tools: [reader] });
    const handle = live.start(pipe, task);
    await handle;
    expect(model.heard.map((heard) => [heard.stage, heardBy(heard)])).toEqual([
      ["first", []],
      ["first", ["says 0"]],
      ["second", ["says 1"]],
    ]);
  });

  test("is for that run alone: a sibling reads its own, the root what was sent to it when they have joined", async () => {
    const sent: Promise<void>[] = [];
    const model = talker(async ({ stage: name, turn }) => {
      if (name === "a" && turn === 0) {
        await eventually(async () => (await live.host.get(`${handle.runId}/fan-1/b`)) !== undefined);
        for (const run of ["", "/fan-1/a", "/fan-1/b"])
          sent.push(sendMessage(live.host, `${handle.runId}${run}`, `to the run${run}`, "me"));
        await Promise.all(sent);
      }
      // Each has a turn after that.
      if (name === "b" && turn === 0) await eventually(() => sent.length === 3);
      return turn === 0 && name !== "last" ? look : finish();
    });
    const pipe = pipeline({
      id: "fork",
      input: z.object({ task: z.string() }),
      stages: { first: worker(), a: worker(), b: worker(), last: worker() },
      initial: "first",
      next: { first: () => fanOut(["a", "b"], { join: "last" }), last: ({ output }) => done(output) },
    });
    const live = session({ model, tools: [reader] });
    const handle = live.start(pipe, task);
    expect(await handle).toMatchObject({ status: "completed" });
    const said = (name: string): readonly string[] =>
      model.heard
        .filter((heard) => heard.stage === name)
        .flatMap((heard) => heardBy(heard).filter((each) => each.startsWith("says")));
    expect([said("first"), said("a"), said("b"), said("last")]).toEqual([
      [],
      ["says to the run/fan-1/a"],
      ["says to the run/fan-1/b"],
      ["says to the run"],
    ]);
  });
});

describe("a run that is resumed", () => {
  /** Suspended in its third call, which had taken what was said during the second; then more is said, and it is resumed. */
  async function interrupted(say: (heard: Heard) => ScriptedTurn) {
    const { clock, first, second } = twoHosts();
    const never = new Promise<ScriptedTurn>(() => undefined);
    const before: Talker = talker(async (heard) => {
      if (heard.turn < 2) await sendMessage(second, handle.runId, `in turn ${heard.turn}`, "me");
      return heard.turn === 2 ? await never : say(heard);
    });
    const pipe = one();
    const here = session({ model: before, clock, host: first, tools: [reader] });
    const handle = here.start(pipe, task);
    await eventually(() => before.heard.length === 3);
    await handle.suspend();
    await sendMessage(second, handle.runId, "while it slept", "me");
    const after = talker(say);
    const there = session({ model: after, clock, host: second, tools: [reader] });
    expect(await there.resume(pipe, handle.runId)).toMatchObject({ status: "completed" });
    return { before, after, events: await eventsOf(second, handle.runId) };
  }

  test("has what was read in its transcript as before; what its lost call had taken is read again", async () => {
    const { before, after, events } = await interrupted(({ turn }) => (turn < 2 ? look : finish()));
    const [again] = after.heard;
    expect(before.heard.map(heardBy).at(-1)).toEqual([
      ...["assistant", "tool", "says in turn 0", "assistant", "tool", "says in turn 1"],
    ]);
    expect(again === undefined ? [] : heardBy(again)).toEqual([
      ...["assistant", "tool", "says in turn 0", "assistant", "tool", "says in turn 1", "says while it slept"],
    ]);
    expect(dataOf(events, "message.received").map(({ turn, text }) => [turn, text])).toEqual([
      [2, "in turn 0"],
      [3, "in turn 1"],
      [3, "while it slept"],
    ]);
  });
});

test("a fork that begins inside a child reads each message to that child, whatever the original run has read", async () => {
  const inner = pipeline({
    id: "inner",
    input: z.object({}),
    stages: { a: worker(), b: worker() },
    initial: "a",
    next: { a: () => to("b"), b: () => done("ok") },
  });
  const outer = pipeline({
    id: "outer",
    input: z.object({}),
    pipelines: { inner },
    stages: { sub: subPipeline({ pipeline: "inner", of: inner, input: {} }) },
    initial: "sub",
    next: { sub: () => done("ok") },
  });
  const model = talker(async ({ stage: name, turn, runId = "" }) => {
    const says = runId.startsWith(first.runId) ? "a" : "b";
    if (turn === 0 && name === says) await sendMessage(live.host, runId, `to ${name}`, "me");
    return turn === 0 ? look : finish();
  });
  const live = session({ model, tools: [reader] });
  const first = live.start(outer, {});
  await first;
  const [from = ""] = forkPointsOf(await live.host.journal(first.runId)).flatMap(({ executionId }) =>
    executionId.startsWith("b#1") ? [executionId] : [],
  );
  expect(await live.fork(outer, first.runId, { from })).toMatchObject({ status: "completed" });
  const last = model.heard.at(-1);
  expect(last === undefined ? [] : heardBy(last)).toEqual(["assistant", "tool", "says to b"]);
});

describe("what a message may hold", () => {
  test("no secret reaches the model or the record; what looks like one is replaced where it is shown", async () => {
    const known = "a1b2c3d4e5f6a7b8c9";
    const looks = "sk-abcdefghijklmnopqrstuvwx";
    const model = talker(() => finish());
    const live = session({ model, tools: [reader], env: { DEPLOY_TOKEN: known } });
    const pipe = one({
      setup: async ({ runId }) => {
        await sendMessage(live.host, runId, `use ${known} and ${looks}`, `me ${known}`);
        return null;
      },
    });
    const { runId } = await live.run(pipe, task);
    expect(model.heard.map(heardBy)).toEqual([[`says use ${REDACTION_MARKER}DEPLOY_TOKEN] and ${looks}`]]);
    const records = await live.host.records(runId);
    expect(JSON.stringify(records)).not.toContain(known);
    const shown = JSON.stringify([await eventsOf(live.host, runId), transcriptEntries(runId, records)]);
    expect(shown).toContain(`use ${REDACTION_MARKER}DEPLOY_TOKEN]`);
    expect(shown).not.toContain(looks);
  });

  test("a message that is too long, empty, or for a run that cannot read it is refused", async () => {
    const live = session({ model: talker(() => finish()), tools: [reader] });
    const send = (runId: string, text: string) => sendMessage(live.host, runId, text, "me");
    const { runId } = await live.run(one(), task);
    for (const [id, text, code] of [
      [runId, "x".repeat(16_385), "message_invalid"],
      [runId, " \n", "message_invalid"],
      [runId, "hello", "run_finished"],
      [`${runId}/fan-1/a`, "hello", "run_unknown"],
    ] as const)
      await expect(send(id, text)).rejects.toMatchObject({ code });
  });

  test("from anybody else: long ones are cut, what is no text is left out, and no call takes more than fifty", async () => {
    const model = talker(({ turn }) => (turn === 0 ? look : finish()));
    const live = session({ model, tools: [reader] });
    const flood = one({
      setup: async ({ runId }) => {
        const payloads: Json[] = [
          { text: "y".repeat(1_000_000) },
          null,
          "text",
          { text: 1 },
          { text: "  " },
          { text: ["x"] },
        ];
        for (let at = 0; at < 50; at += 1) payloads.push({ text: String(at) });
        for (const payload of payloads)
          await live.host.signal(runId, { name: "message", payload, by: "z".repeat(9_999) });
        return null;
      },
    });
    const { runId } = await live.run(flood, task);
    const [early = [], late = []] = model.heard.map(heardBy);
    expect(early[0]).toHaveLength("says ".length + 16_384 + 2);
    expect(early.slice(1)).toEqual(Array.from({ length: 44 }, (_, at) => `says ${at}`));
    expect(late.slice(early.length + 2)).toEqual(Array.from({ length: 6 }, (_, at) => `says ${at + 44}`));
    const events = dataOf(await eventsOf(live.host, runId), "message.received");
    expect(events).toHaveLength(56);
    expect(Math.max(...events.map(({ by, text }) => String(by).length + String(text).length))).toBeLessThan(17_000);
  });
});

describe("where a cap on tokens holds", () => {
  test("what a message adds to the prompt is set aside, and one that the call cannot be made for stays unread", async () => {
    const model = talker(() => finish());
    const live = session({ model, tools: [reader] });
    const send = async ({ runId }: { readonly runId: string }): Promise<null> => {
      await sendMessage(live.host, runId, "long ".repeat(3_000), "me");
      return null;
    };
    const capped = (setup?: typeof send) =>
      one({ maxOutputTokens: 100, ...(setup === undefined ? {} : { setup }) }, { maxTokens: 3_000 });
    expect(await live.run(capped(), task)).toMatchObject({ status: "completed" });
    const { status, runId } = await live.run(capped(send), task);
    expect(status).toBe("failed");
    expect(model.heard).toHaveLength(1);
    const events = await eventsOf(live.host, runId);
    expect(dataOf(events, "limit.reached")).toHaveLength(1);
    expect(dataOf(events, "message.received")).toEqual([]);
  });
});
