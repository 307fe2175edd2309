import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  backToInterrupted,
  cancel,
  done,
  fanOut,
  type Json,
  type Pipeline,
  pipeline,
  type State,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals, exportLines, type JournalStore } from "@sluice/core/host";
import { replayRun, type ScriptedTurn, sendMessage, subPipeline } from "@sluice/stages";
import { readRun, writeRun } from "@sluice/stages/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { turns } from "../support/journal.ts";
import { completed, eventually, failed, noModel, session, tool, work, workExecutor } from "../support/run-kit.ts";
import { ASKING, begin, FAILING, play, SMOOTH, ship, TROUBLED } from "../support/run-scenes.ts";
import { scripted } from "../support/run-views.ts";
import { rehashed } from "../support/tampering.ts";

const OWN = { env: {}, executors: [workExecutor] };
const finish = (text = "ok"): ScriptedTurn => ({ calls: [{ tool: "finish", input: { text } }] });
const use = (name: string, input: object = {}): ScriptedTurn => ({
  calls: [{ tool: name, input: JSON.parse(JSON.stringify(input)) }],
});

type Options = Partial<Omit<Parameters<typeof stage>[0], "completionSchema">>;
function agent(options: Options = {}) {
  return stage({
    prompt: "Do it.",
    allowedTools: ["Look", "Push"],
    completionTool: "finish",
    turnCap: 8,
    ...options,
    completionSchema: z.object({ text: z.string() }),
  });
}
function single(options: Options = {}, limits = {}) {
  return pipeline({
    id: "single",
    input: z.object({ task: z.string() }),
    limits,
    stages: { one: agent(options) },
    initial: "one",
    next: { one: ({ output }) => done(output.text) },
  });
}
const task = { task: "go" };
const tools = (ran: string[] = []) => [
  tool("Look", { effect: "read", execute: async () => ({ ok: true, output: ran.push("Look") }) }),
  tool("Push", {
    input: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
    execute: async () => ({ ok: true, output: ran.push("Push") }),
  }),
];

/** Runs a pipeline in parallel with a state that fails, which is handled. */
function beside(inner: Pipeline<Record<string, never>, null>, failing: State<Json, unknown>) {
  return pipeline({
    id: "outer",
    input: z.object({}),
    pipelines: { inner },
    stages: { both: work(), sub: subPipeline({ pipeline: "inner", input: {} }), failing, after: work() },
    initial: "both",
    next: {
      both: { completed: () => fanOut(["sub", "failing"], { join: "after" }), failed: () => to("after") },
      sub: () => to("after"),
      failing: () => to("after"),
      after: () => done("handled"),
    },
  });
}

describe("a recorded run is replayed as it was recorded", () => {
  test.each([
    ["when nothing goes wrong", SMOOTH, "approve"],
    ["with calls that are granted", ASKING, "approve"],
    ["with calls that are denied", ASKING, "deny"],
    ["with calls that are put off", ASKING, "defer"],
    ["sent back by assert, schema and reviewer, with a model that failed", TROUBLED, "approve"],
    ["when it fails", FAILING, "approve"],
  ])("%s", async (_what, script, answer) => {
    const { live, runId } = await play(script, answer);
    const report = await replayRun(ship, await live.host.journal(runId), { env: {} });
    expect(report.divergence?.message).toBeUndefined();
    expect(report).toMatchObject({ identical: true, changes: [] });
    expect(report.decided).toBeGreaterThan(3);
  });

  test("where a sibling's failure cancelled the other, and where a person cancelled the whole run", async () => {
    const failing = {
      ...SMOOTH,
      test: [use("look"), { errors: [{ status: 400, message: "no" }] }],
      lint: ASKING.lint ?? [],
    };
    const { live, runId, result } = await play(failing);
    expect(result.status).toBe("failed");
    const report = await replayRun(ship, await live.host.journal(runId), OWN);
    expect([report.divergence?.message, report.status]).toEqual([undefined, "failed"]);

    const { live: other, handle } = begin(ASKING);
    await eventually(async () => (await other.host.requests()).length > 0, "a request");
    await handle.cancel("enough");
    const cancelled = await replayRun(ship, await other.host.journal(handle.runId), OWN);
    expect([cancelled.divergence?.message, cancelled.status]).toEqual([undefined, "cancelled"]);
  });

  test("where a sibling's failure cancelled a pipeline that had a fan-out of its own", async () => {
    const begun: string[] = [];
    const waiting = (name: string) =>
      work({
        act: async ({ ask }) => {
          begun.push(name);
          await ask({ name: "ok", question: { question: "Ok?", answer: { type: "string" } } });
          return completed(null);
        },
      });
    const inner = pipeline({
      id: "inner",
      input: z.object({}),
      stages: { plan: work(), left: waiting("left"), right: waiting("right"), after: work() },
      initial: "plan",
      next: {
        plan: () => fanOut(["left", "right"], { join: "after" }),
        left: () => to("after"),
        right: () => to("after"),
        after: () => done(null),
      },
    });
    const failing = work({
      act: async () => {
        await eventually(() => begun.length > 1);
        return failed("no");
      },
    });
    const outer = beside(inner, failing);
    const live = session({ wait: true });
    const handle = live.start(outer, {});
    expect(await handle).toMatchObject({ status: "completed", output: "handled" });
    const report = await replayRun(outer, await live.host.journal(handle.runId), OWN);
    expect(report.divergence?.message).toBeUndefined();
    expect(report.identical).toBe(true);
  });

  test.each(["a person", "a sibling's failure"])(
    "where %s cancelled it while the start of a handler was recorded",
    async (by) => {
      const isFailure = by !== "a person";
      const { promise: recording, resolve: record } = Promise.withResolvers<void>();
      const touching = work({
        allowedTools: ["Push"],
        act: async ({ calls }) => {
          await calls(1, [{ id: "c1", tool: "Push", input: { to: "main" } }]);
          return completed(null);
        },
      });
      const failing = work({
        act: async () => {
          await recording;
          return failed("no");
        },
      });
      const watched = pipeline({
        id: "watched",
        input: z.object({}),
        interrupts: { AUDIT: { files: "db/**", target: "audit" } },
        stages: { first: work(), touching, failing, audit: work(), after: work() },
        initial: "first",
        next: {
          first: {
            completed: () => (isFailure ? fanOut(["touching", "failing"], { join: "after" }) : to("touching")),
            failed: () => to("after"),
          },
          touching: () => to("after"),
          failing: () => to("after"),
          audit: () => backToInterrupted(),
          after: () => done("handled"),
        },
      });
      const store = createMemoryJournals().connect();
      let cancelling: Promise<unknown> | undefined;
      const slow: JournalStore = {
        ...store,
        append: async (commit) => {
          if (commit.record.events.includes("interrupt.started")) {
            if (isFailure) record();
            else cancelling = handle.cancel("enough");
            await turns();
          }
          await store.append(commit);
        },
      };
      const push = tool("Push", { execute: async () => ({ ok: true, output: "ok", changed: ["db/a.sql"] }) });
      const live = session({ host: createHost(slow), tools: [push] });
      const handle = live.start(watched, {});
      expect((await handle).status).toBe(isFailure ? "completed" : "cancelled");
      await cancelling;
      const journals = await live.host.journal(handle.runId);
      const recorded = journals.flatMap(({ records }) => records.map(({ stepId }) => stepId));
      expect(recorded).toContain("touching#1/a1/interrupt/0");
      expect(recorded.filter((step) => step.startsWith("audit"))).toEqual([]);
      const report = await replayRun(watched, journals, { ...OWN, tools: [push] });
      expect(report.divergence?.message).toBeUndefined();
      expect(report.identical).toBe(true);
    },
  );

  test("where a sibling's failure cancelled it between any two phases of an execution", async () => {
    const after = async (microtasks: number): Promise<void> => {
      for (let done = 0; done < microtasks; done += 1) await Promise.resolve();
    };
    for (let microtasks = 0; microtasks < 80; microtasks += 1) {
      const failing = work({
        act: async () => {
          await after(microtasks);
          return failed("no");
        },
      });
      const inner = pipeline({
        id: "inner",
        input: z.object({}),
        stages: { one: work(), two: work() },
        initial: "one",
        next: { one: () => to("two"), two: () => done(null) },
      });
      const outer = beside(inner, failing);
      const live = session();
      const { runId } = await live.run(outer, {});
      const report = await replayRun(outer, await live.host.journal(runId), OWN);
      expect(report.divergence?.message).toBeUndefined();
    }
  });

  test("in a stage that limits edits, with calls that edit nothing", async () => {
    const limited = single({ limits: { maxFiles: 1 } });
    const live = scripted({ one: [use("Look"), finish()] }, { tools: tools() });
    const { runId, status } = await live.run(limited, task);
    expect(status).toBe("completed");
    const report = await replayRun(limited, await live.host.journal(runId), { env: {}, tools: tools() });
    expect(report.divergence?.message).toBeUndefined();
  });

  test("that was forked from another, at whatever boundary", async () => {
    const { live, runId } = await play(SMOOTH);
    for (const from of ["plan#1", "execute#1", "test#1", "lint#1", "review#1"]) {
      const forked = live.fork(ship, runId, { from });
      expect((await forked).status).toBe("completed");
      const report = await replayRun(ship, await live.host.journal(forked.runId), OWN);
      expect([from, report.divergence?.message, report.status]).toEqual([from, undefined, "completed"]);
    }
  });

  test("that was forked with another mode, folder or pipeline: its past is taken as it is, what came after is decided", async () => {
    const open = (prompt: string) =>
      stage({
        prompt,
        completionTool: "finish",
        turnCap: 3,
        completionSchema: z.object({ text: z.string() }),
      });
    /** Two stages without an envelope, between them two more side by side. */
    const flow = (before: string, after = before) =>
      pipeline({
        id: "flow",
        input: z.object({ task: z.string() }),
        stages: { one: open(before), left: open(before), right: open(before), two: open(after) },
        initial: "one",
        next: {
          one: () => fanOut(["left", "right"], { join: "two" }),
          two: ({ output }) => done(output.text),
        },
      });
    const turns = (to: string) => [use("Push", { to }), finish(to)];
    const script = { one: turns("a"), left: turns("b"), right: turns("c"), two: turns("d") };
    const clock = handClock();
    const store = createHost(createMemoryJournals().connect(), { clock });
    const begun = scripted(script, { clock, host: store, tools: tools(), mode: "yolo" });
    const { runId, status } = await begun.run(flow("first"), task);
    expect(status).toBe("completed");

    const folder = mkdtempSync(join(tmpdir(), "sluice-replay-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const from of ["left#1", "two#1"])
      for (const now of [flow("first"), flow("second")]) {
        const careful = scripted(script, { clock, host: store, tools: tools(), cwd: folder, wait: false });
        const forked = careful.fork(now, runId, { from, allowChanged: true });
        const { denied } = await forked;
        expect(denied.length).toBe(from === "two#1" ? 1 : 2);
        const journals = await store.journal(forked.runId);
        const report = await replayRun(now, journals, OWN);
        expect([report.divergence?.message, report.identical]).toEqual([undefined, true]);
        // Of two changes the one that made a difference to this run is reported.
        const { divergence } = await replayRun(flow("third", "fourth"), journals, OWN);
        expect(divergence?.executionId).toBe(from);
      }
    // The run itself decided all of it.
    const { divergence } = await replayRun(flow("third"), await store.journal(runId), OWN);
    expect(divergence?.executionId).toBe("one#1");
  });

  test("through several processes: a call that no one knows the outcome of, a model call that was lost, a resume", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const pipe = single({}, { maxTokens: 1_000_000 });
    const script = { one: [use("Look"), use("Push", { to: "a" }), finish()] };
    let runId = "";
    for (const [last, at] of [
      ["model/1", /turn\/1\/model$/],
      ["call", /turn\/2\/0\/call$/],
      ["end", /never/],
    ] as const) {
      const store = memory.connect();
      let gone = false;
      const dying = {
        ...store,
        append: (commit: Parameters<typeof store.append>[0]) => {
          if (gone) throw new Error("the process is gone");
          const { phase, stepId } = commit.record;
          const written = store.append(commit);
          if (phase === "open" && at.test(stepId)) gone = true;
          return written;
        },
      };
      const live = scripted(script, { clock, tools: tools(), host: createHost(dying, { clock }) });
      const handle = runId === "" ? live.start(pipe, task) : live.resume(pipe, runId);
      runId = handle.runId;
      if (last === "end") expect((await handle).status).toBe("completed");
      else await expect(Promise.resolve(handle)).rejects.toThrow();
      await live.close();
      await store.close();
    }
    const journals = await createHost(memory.connect(), { clock }).journal(runId);
    const text = JSON.stringify(journals);
    expect(text).toContain("outcome_unknown");
    expect(text).toContain('\\"kind\\":\\"lost\\"');
    const report = await replayRun(pipe, journals, OWN);
    expect([report.divergence?.message, report.status]).toEqual([undefined, "completed"]);
    // What is not there yet cannot be other: an unfinished run is replayed as far as it goes.
    const [root] = journals;
    if (root === undefined) throw new Error("no journal");
    for (let length = 1; length < root.records.length; length += 1) {
      const records = root.records.slice(0, length);
      const { end: _end, ...rest } = root;
      const claimed = { records: length, head: records.at(-1)?.hash ?? "" };
      const part = await replayRun(pipe, [{ ...rest, records, claimed }], OWN);
      expect([part.divergence?.message, part.status]).toEqual([undefined, "unfinished"]);
    }
  });

  test("with messages that people sent into it, and with an answer to a question", async () => {
    const looks = tool("Look", {
      effect: "read",
      execute: async (_input, { runId }) => {
        await sendMessage(live.host, runId, "Mind the tabs.", "me");
        return { ok: true, output: "seen" };
      },
    });
    const live = scripted({ one: [use("Look"), finish()] }, { tools: [looks, ...tools().slice(1)] });
    const handle = live.start(single(), task);
    await handle;
    const journals = await live.host.journal(handle.runId);
    expect(JSON.stringify(journals)).toContain("Mind the tabs.");
    expect((await replayRun(single(), journals, OWN)).divergence?.message).toBeUndefined();

    const asking = single({ allowedTools: ["AskUser"] });
    const ask = use("AskUser", { question: "Which?", options: ["left", "right"] });
    const person = { name: "me", answer: async () => ({ kind: "value" as const, value: "left" }) };
    const asked = scripted({ one: [ask, finish()] }, { wait: false, interactors: [person] });
    const { runId } = await asked.run(asking, task);
    expect((await replayRun(asking, await asked.host.journal(runId), OWN)).divergence?.message).toBeUndefined();
  });

  test("with time caps, hard limits and arguments that a tool which is not here did not take", async () => {
    const clock = handClock();
    const slow = tool("Look", {
      effect: "read",
      execute: async () => {
        clock.turn(2_000);
        return { ok: true, output: "late" };
      },
    });
    const pipe = single({ limits: { timeoutMs: 1_000 } });
    const live = scripted(
      { one: [use("Push", {}), use("Push", { to: "a" }), use("Look"), finish()] },
      { clock, tools: [slow, ...tools().slice(1)] },
    );
    const result = await live.run(pipe, task);
    expect(result.status).toBe("failed");
    const journals = await live.host.journal(result.runId);
    // Nothing but the record: `Look` and `Push` are no tools here.
    expect((await replayRun(pipe, journals, OWN)).divergence?.message).toBeUndefined();
  });
});

describe("what runs again, and what is taken from the record", () => {
  test("setup, precondition, exit, models and tools are not asked; prompt, guard hook, schema, assert and route are", async () => {
    const called: string[] = [];
    const note = <T>(name: string, value: T): T => {
      called.push(name);
      return value;
    };
    const schema = z.object({ text: z.string().refine((text) => note("schema", text !== "")) });
    const pipe = pipeline({
      id: "hooks",
      input: z.object({ task: z.string() }),
      onCall: () => note("onCall", undefined),
      stages: {
        one: stage({
          prompt: ({ setup }) => note("prompt", `Do it: ${JSON.stringify(setup)}`),
          allowedTools: ["Push"],
          completionTool: "finish",
          completionSchema: schema,
          turnCap: 4,
          setup: () => note("setup", { at: called.length }),
          precondition: () => note("precondition", "proceed" as const),
          assert: () => note("assert", "ok" as const),
          exit: () => note("exit", undefined),
        }),
      },
      initial: "one",
      next: { one: ({ output }) => note("next", done(output.text)) },
    });
    const live = scripted({ one: [use("Push", { to: "a" }), finish()] }, { tools: tools(called) });
    const { runId } = await live.run(pipe, task);
    const journals = await live.host.journal(runId);
    expect(called).toEqual(["setup", "prompt", "precondition", "onCall", "Push", "schema", "assert", "exit", "next"]);
    called.length = 0;
    const report = await replayRun(pipe, journals, { ...OWN, tools: tools(called) });
    expect(report.divergence?.message).toBeUndefined();
    expect(called).toEqual(["prompt", "onCall", "schema", "assert", "next"]);
  });

  test("code that is not the same each time shows as a difference", async () => {
    let times = 0;
    const prompt = (): string => {
      times += 1;
      return `Time ${times}.`;
    };
    const pipe = single({ prompt });
    const live = scripted({ one: [finish()] }, { tools: tools() });
    const { runId } = await live.run(pipe, task);
    const { divergence } = await replayRun(pipe, await live.host.journal(runId), OWN);
    expect(divergence).toMatchObject({ executionId: "one#1", attempt: 1, path: "$.init.system" });
    expect(divergence?.message).toContain("  - Time 1.\n  + Time 2.");
  });

  test("a step of one's own is handed back, and called again where it says that it decides", async () => {
    const called: string[] = [];
    const step = (name: string) => () => {
      called.push(name);
      return name;
    };
    const pipe = pipeline({
      id: "own",
      input: z.object({}),
      stages: {
        a: work({
          act: async ({ steps }) => {
            await steps.run("acts", step("acts"));
            return completed(await steps.run("decides", step("decides"), { decides: () => true }));
          },
        }),
      },
      initial: "a",
      next: { a: () => done(null) },
    });
    const live = session({ model: noModel });
    const { runId } = await live.run(pipe, {});
    const journals = await live.host.journal(runId);
    called.length = 0;
    expect((await replayRun(pipe, journals, OWN)).identical).toBe(true);
    expect(called).toEqual(["decides"]);
  });

  test("a session's guard hook has to be given again; without it the verdict is another", async () => {
    const onCall = () => ({ veto: "not today" });
    const live = scripted({ one: [use("Push", { to: "a" }), finish()] }, { tools: tools(), onCall });
    const { runId } = await live.run(single(), task);
    const journals = await live.host.journal(runId);
    expect((await replayRun(single(), journals, { ...OWN, tools: tools(), onCall })).identical).toBe(true);
    const { divergence } = await replayRun(single(), journals, { ...OWN, tools: tools() });
    expect(divergence).toMatchObject({
      executionId: "one#1",
      turn: 1,
      callId: "t1.c0",
      recorded: "refused",
      now: "approved",
    });
  });
});

describe("a pipeline that goes another way", () => {
  const routed = (go: () => ReturnType<typeof to<"b">> | ReturnType<typeof done>, ran: Json[] = []) =>
    pipeline({
      id: "routed",
      input: z.object({}),
      stages: {
        a: work(),
        b: work({
          act: async (scope) => {
            const [outcome] = await scope.calls(1, [{ id: "t1.c0", tool: "Push", input: { to: "b" } }]);
            ran.push(outcome?.output ?? null);
            return completed(null);
          },
        }),
      },
      initial: "a",
      next: { a: () => go(), b: () => done(null) },
    });

  test("is stopped where the record has no result for it: nothing is called", async () => {
    const ran: string[] = [];
    const live = session({ model: noModel, tools: tools(ran) });
    const { runId } = await live.run(
      routed(() => done(null)),
      {},
    );
    const journals = await live.host.journal(runId);
    const outcomes: Json[] = [];
    const longer = await replayRun(
      routed(() => to("b"), outcomes),
      journals,
      { ...OWN, tools: tools(ran) },
    );
    expect(longer.divergence).toMatchObject({
      executionId: "a#1",
      path: "$.next.choice.kind",
      recorded: "done",
      now: "to",
    });
    expect([ran, outcomes]).toEqual([[], []]);
  });

  test("in act is reported by the step that the record does not have", async () => {
    const acting = (name: string) =>
      pipeline({
        id: "acting",
        input: z.object({}),
        stages: { a: work({ act: async (scope) => completed(await scope.steps.run(name, () => name)) }) },
        initial: "a",
        next: { a: () => cancel("over") },
      });
    const live = session({ model: noModel });
    const { runId } = await live.run(acting("first"), {});
    const journals = await live.host.journal(runId);
    expect(await replayRun(acting("first"), journals, OWN)).toMatchObject({ identical: true, status: "cancelled" });
    const { divergence } = await replayRun(acting("second"), journals, OWN);
    expect(divergence).toMatchObject({ part: "step", recorded: "a#1/a1/first", now: "a#1/a1/second" });
    expect(divergence?.means).toContain("a replay calls nothing");
  });

  test("with several siblings that differ is reported by the first", async () => {
    const clock = handClock();
    const forked = (text: string) =>
      pipeline({
        id: "forked",
        input: z.object({}),
        stages: { start: work(), a: work({ init: () => text }), b: work({ init: () => text }), end: work() },
        initial: "start",
        next: { start: () => fanOut(["a", "b"], { join: "end" }), end: () => done(null) },
      });
    const live = session({ model: noModel, clock });
    const { runId } = await live.run(forked("old"), {});
    const { divergence } = await replayRun(forked("new"), await live.host.journal(runId), OWN);
    expect(divergence).toMatchObject({ runId: `${runId}/fan-1/a`, executionId: "a#1", recorded: "old", now: "new" });
  });
});

test("a secret that the run was kept from is in no report", async () => {
  const env = { DEPLOY_TOKEN: "planted-1234567890-abcdefgh" };
  const secretive = (word: string) => single({ prompt: () => `${word} with ${env.DEPLOY_TOKEN}.` });
  const live = scripted({ one: [use("Push", { to: env.DEPLOY_TOKEN }), finish()] }, { tools: tools(), env });
  const { runId } = await live.run(secretive("Push"), task);
  const journals = await live.host.journal(runId);
  expect((await replayRun(secretive("Push"), journals, { ...OWN, env })).divergence?.message).toBeUndefined();
  const other = await replayRun(secretive("Pull"), journals, { ...OWN, env });
  expect(other.divergence?.message).toContain("+ Pull with [redacted:DEPLOY_TOKEN].");
  expect(JSON.stringify(other)).not.toContain(env.DEPLOY_TOKEN);
});

describe("a run in a file", () => {
  const folder = (): string => {
    const made = mkdtempSync(join(tmpdir(), "sluice-replay-"));
    onTestFinished(() => rmSync(made, { recursive: true, force: true }));
    return made;
  };

  test("is read as it was written, and only its owner can read it", async () => {
    const { live, runId } = await play(ASKING);
    const journals = await live.host.journal(runId);
    const file = join(folder(), "run.jsonl");
    await writeRun(file, journals);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await readRun(file)).toEqual(journals);
    // Also where others could read what stood there.
    chmodSync(file, 0o644);
    await writeRun(file, journals);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await replayRun(ship, await readRun(file), { env: {} })).identical).toBe(true);
  });

  test("that was changed, or that holds no values, is refused; so is a journal that is not as it was written", async () => {
    const { live, runId } = await play(SMOOTH);
    const journals = await live.host.journal(runId);
    const file = join(folder(), "run.jsonl");
    writeFileSync(file, [...exportLines(journals, { values: true })].join("").replace("First I look", "First I lurk"));
    await expect(readRun(file)).rejects.toMatchObject({ code: "journal_damaged" });
    writeFileSync(file, [...exportLines(journals)].join(""));
    await expect(readRun(file)).rejects.toMatchObject({ code: "export_without_values" });
    const turned = journals.map((journal) => ({
      ...journal,
      records: journal.records.map((record) => ({ ...record, value: record.value.replace("fine", "poor") })),
    }));
    await expect(replayRun(ship, turned, OWN)).rejects.toMatchObject({ code: "journal_damaged" });
    // As no run leaves it, though its chain is whole: nothing could walk through it.
    const [root, ...siblings] = journals;
    if (root === undefined) throw new Error("no journal");
    for (const part of ["value", "events"] as const) {
      const records = root.records.map((record, seq) =>
        seq === 1
          ? { ...record, [part]: record[part].replace(/:"[^"]*"/, `:${"[".repeat(20_000)}${"]".repeat(20_000)}`) }
          : record,
      );
      const deep = [rehashed({ ...root, records }), ...siblings];
      await expect(replayRun(ship, deep, OWN)).rejects.toMatchObject({ code: "journal_damaged" });
    }
    await expect(replayRun(single(), journals, OWN)).rejects.toMatchObject({ code: "pipeline_mismatch" });
    await expect(replayRun(ship, journals.slice(1, 2), OWN)).rejects.toMatchObject({ code: "journal_damaged" });
  });
});
