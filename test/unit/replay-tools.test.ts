import type { Json, JsonObject, RunJournal, Tool, ToolSpec } from "@sluice/core";
import { GENESIS } from "@sluice/core/host";
import { digestOf, replayClock, replayTools } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { chain, life, type RecordDraft, step } from "../support/chains.ts";
import { handClock } from "../support/hand-clock.ts";
import { tool } from "../support/run-kit.ts";
import { stageIn, tempFolder } from "../support/tools.ts";

function journal(drafts: readonly RecordDraft[], runId = "r1"): RunJournal {
  const records = chain(runId, [life("start", "null"), ...drafts]);
  return { runId, input: null, records, claimed: { records: records.length, head: records.at(-1)?.hash ?? GENESIS } };
}
const NOTHING: ToolSpec<Json> = {
  name: "Nothing",
  description: "Nothing.",
  effect: "read",
  input: { type: "object" },
  subjects: () => [],
  execute: async () => ({ ok: true, output: null }),
};
const GROUP = "a#1/a1/turn/1/0";
const approved = (id: string, name: string): Json => ({
  id,
  tool: name,
  verdict: { kind: "approved", by: "envelope" },
  subjects: [],
});
const misfit = (id: string, name: string, issues: Json, code = "invalid_tool_input"): Json => ({
  id,
  tool: name,
  verdict: { kind: "refused", output: { code, issues } },
  subjects: [],
});
const judged = (verdicts: Json, decided: readonly JsonObject[] = [], at = `${GROUP}/verdicts`): RecordDraft => ({
  ...step(0, at, "done", verdicts),
  events: JSON.stringify(decided.map((data) => ({ at: 1, type: "call.decided", data }))),
});
const called = (phase: "open" | "done", part = "call", at = GROUP): RecordDraft => step(1, `${at}/${part}`, phase, 1);

const standIn = (drafts: readonly RecordDraft[], name = "Push", more: readonly RunJournal[] = []): Tool =>
  replayTools(new Map(), [name], [journal(drafts), ...more]).get(name) ?? expect.fail();
const effectOf = (drafts: readonly RecordDraft[], name = "Push"): string => standIn(drafts, name).effect;

describe("the tools of a replay", () => {
  test("are those of the record, in its order, and then what else is here", () => {
    const live = new Map(["Look", "Push", "More"].map((name) => [name, tool(name)]));
    const tools = replayTools(live, ["Push", "Gone", "Look"], []);
    expect([...tools].map(([name, { name: own }]) => [name, own])).toEqual(
      ["Push", "Gone", "Look", "More"].map((name) => [name, name]),
    );
  });

  test("look and judge like those that are here, and neither look at the world nor act", async () => {
    const live = tool("Ask", {
      effect: "ask",
      description: "Asks.",
      input: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
      question: (input) => ({ question: `To ${JSON.stringify(input)}?`, answer: {} }),
      subjects: () => expect.fail("looked at the world"),
      prepare: async () => expect.fail("looked at the world"),
      execute: async () => expect.fail("acted"),
      recover: async () => expect.fail("looked at the world"),
    });
    const replayed = replayTools(new Map([["Ask", live]]), [], []).get("Ask") ?? expect.fail();
    const { description, effect, inputSchema, schemaDigest } = live;
    expect(replayed).toMatchObject({ name: "Ask", description, effect, inputSchema, schemaDigest });
    expect(replayed).not.toHaveProperty("recover");
    expect(Object.isFrozen(replayed)).toBe(true);
    const given = { to: "a" };
    const bound = await replayed.bind(given);
    if (!bound.ok) return expect.fail("not bound");
    expect(bound).toMatchObject({ input: given, question: { question: 'To {"to":"a"}?' } });
    const folder = tempFolder();
    expect(bound.subjects(folder, { env: {}, mayWrite: false })).toEqual([]);
    expect(bound).not.toHaveProperty("prepare");
    const { call } = stageIn(folder).judge(NOTHING, given);
    await expect(bound.execute(call)).rejects.toMatchObject({ class: "Host", code: "replay_acted" });
    expect(await replayed.bind({})).toMatchObject({ ok: false, issues: [{ path: "$.to" }] });
    expect(await replayed.bind({})).toEqual(await live.bind({}));
  });

  test("are given what the schema makes of an input, where it makes something else of it", async () => {
    const { z } = await import("zod");
    const live = tool("Trim", { input: z.object({ to: z.string().trim() }) });
    const replayed = replayTools(new Map([["Trim", live]]), ["Trim"], []).get("Trim") ?? expect.fail();
    expect(await replayed.bind({ to: " a " })).toMatchObject({
      ok: true,
      input: { to: "a" },
    });
  });
});

describe("a tool that is not here", () => {
  test("takes what it is given, and cannot act either", async () => {
    const push = standIn([]);
    expect(push).toMatchObject({
      name: "Push",
      description: "recorded",
      effect: "write",
      inputSchema: {},
      schemaDigest: "",
    });
    expect(Object.isFrozen(push)).toBe(true);
    const bound = await push.bind({ to: "a" });
    if (!bound.ok) return expect.fail("not bound");
    expect(bound).toMatchObject({ input: { to: "a" } });
    expect(bound.question).toBeUndefined();
  });

  test("is known to read where it was called in a group, or without a record before its call", () => {
    const one = judged([approved("c0", "Push")]);
    expect(effectOf([one])).toBe("write");
    expect(effectOf([one, called("open"), called("done")])).toBe("write");
    expect(effectOf([one, called("done")])).toBe("read");
    const group = judged([approved("c0", "Push"), approved("c1", "Look")]);
    expect([effectOf([group]), effectOf([group], "Look"), effectOf([group], "Other")]).toEqual([
      "read",
      "read",
      "write",
    ]);
    // Only what was done counts, and only in the run that it was done in.
    expect(effectOf([one, called("open")])).toBe("write");
    const elsewhere = journal([one, called("done")], "r1/fan/a");
    expect(standIn([one, called("open"), called("done")], "Push", [elsewhere]).effect).toBe("read");
    const apart = [journal([one, called("open")]), journal([called("done")], "r1/fan/a")];
    expect(replayTools(new Map(), ["Push"], apart).get("Push")?.effect).toBe("write");
  });

  test("is known to ask where a question was put", () => {
    const one = judged([approved("c0", "Push")]);
    expect(effectOf([one, called("done", "question")])).toBe("ask");
    expect(effectOf([one, called("open", "question")])).toBe("write");
    expect(effectOf([called("done", "question")])).toBe("write");
  });

  test("is known by the steps of calls alone: others may be called anything", () => {
    const one = judged([approved("c0", "Push")]);
    for (const at of ["turn/1/0", "a#1/a1/turn/x/0", "a#1/a1/turn/1/x", "a#1/a1/turn/10", "a#1/a1/turns/1/0"])
      expect(effectOf([one, called("done", "call", at)])).toBe("write");
    for (const part of ["called", "calls", "recall", "judge/call/more"])
      expect(effectOf([one, called("done", part)])).toBe("write");
    expect(effectOf([one, called("done", "call", "b#12/a3/turn/10/25")])).toBe("read");
    const group = [approved("c0", "Push"), approved("c1", "Push")];
    expect(effectOf([judged(group, [], "a#1/a1/verdicts")])).toBe("write");
  });

  test("is not known by what no gate recorded", () => {
    const odd: readonly Json[] = [
      null,
      7,
      {},
      { 0: approved("c0", "Push"), length: 2 },
      [null, approved("c0", "Push")],
      [approved("c0", "Push"), "x"],
      [approved("c0", "Push"), { id: 7, tool: "Push", verdict: { kind: "approved" } }],
      [approved("c0", "Push"), { id: "c1", tool: 7, verdict: { kind: "approved" } }],
      [approved("c0", "Push"), { id: "c1", tool: "Push", verdict: {} }],
      [approved("c0", "Push"), { id: "c1", tool: "Push" }],
    ];
    for (const verdicts of odd) expect([verdicts, effectOf([judged(verdicts)])]).toEqual([verdicts, "write"]);
    expect(effectOf([{ ...judged([]), value: "[" }, called("done")])).toBe("write");
    // The next group is another: what was judged before it says nothing of its calls.
    expect(effectOf([judged([approved("c0", "Push")]), judged(null), called("done")])).toBe("write");
  });

  test("refuses what the record says it did not take, with the same words", async () => {
    const given = { to: 7 };
    const argsDigest = digestOf(given);
    const issues = [{ path: "$.to", message: "must be a text" }];
    const bindOf = async (verdict: Json, decided: readonly JsonObject[], name = "Push", input: Json = given) =>
      await standIn([judged([verdict], decided)], name).bind(input);
    const decided = [{ callId: "c0", argsDigest }];
    expect(await bindOf(misfit("c0", "Push", issues), decided)).toEqual({ ok: false, issues });
    // Others it took: other arguments, another tool's, what was refused for another reason, what names no arguments.
    const taken = await Promise.all([
      bindOf(misfit("c0", "Push", issues), decided, "Push", { to: 8 }),
      bindOf(misfit("c0", "Look", issues), decided),
      bindOf(misfit("c0", "Push", issues, "denied"), decided),
      bindOf(approved("c0", "Push"), decided),
      bindOf(misfit("c0", "Push", issues), [{ callId: "c1", argsDigest }]),
      bindOf(misfit("c0", "Push", issues), [{ callId: "c0", argsDigest: 7 }]),
      bindOf(
        { id: "c0", tool: "Push", verdict: { kind: "approved", output: { code: "invalid_tool_input" } }, subjects: [] },
        decided,
      ),
    ]);
    expect(taken.map(({ ok }) => ok)).toEqual([true, true, true, true, true, true, true]);
    for (const odd of [null, {}, "x", [7, null]]) {
      const bound = await bindOf(misfit("c0", "Push", odd), decided);
      expect(bound).toEqual({
        ok: false,
        issues: Array.isArray(odd) ? odd.map(() => ({ path: "", message: "" })) : [],
      });
    }
    expect(
      await bindOf(
        { ...Object(misfit("c0", "Push", 1)), verdict: { kind: "refused", output: { code: "invalid_tool_input" } } },
        decided,
      ),
    ).toEqual({
      ok: false,
      issues: [],
    });
  });
});

test("the clock of a replay stands still, and its timers are real", () => {
  const timers = handClock();
  const clock = replayClock(timers, 77);
  const rung: number[] = [];
  const disarm = clock.after(10, () => rung.push(clock.now()));
  clock.after(10, () => rung.push(1));
  disarm();
  timers.turn(9);
  expect(rung).toEqual([]);
  timers.turn(1);
  expect([rung, clock.now()]).toEqual([[1], 77]);
});
