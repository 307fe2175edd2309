import { type AllowedTool, done, type Json, pipeline, type RunHost, type Tool } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import type { RunResult } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { approving, eventData } from "../support/attack.ts";
import { handClock } from "../support/hand-clock.ts";
import { changed, turns } from "../support/journal.ts";
import { completed, eventsOf, noModel, session, type TestSessionOptions, tool, work } from "../support/run-kit.ts";
import { calling, failingAt, working } from "../support/stopped-runs.ts";

// A call that one process approved and did not begin, and that another one finds: what approved it may be gone.

/** What a process knows: the stage's envelope, none when it is left out, and the session. */
interface Life extends TestSessionOptions {
  readonly allowedTools?: readonly AllowedTool[];
}

const model = calling([["Deploy", { to: "test" }]]);

function pipelineOf(allowedTools: readonly AllowedTool[] | undefined) {
  return working({ id: "approved", allowedTools });
}

/** Runs until a record of this step would be written, and goes on with it in another process. */
async function takenUp(stopsAt: RegExp, first: Life, second: Life, phase?: "done") {
  const memory = createMemoryJournals();
  const clock = handClock();
  const living = (host: RunHost, { allowedTools: _allowed, ...life }: Life) =>
    session({ cwd: import.meta.dirname, ...life, model, clock, host: () => host });
  const dies = living(createHost(failingAt(memory.connect(), stopsAt, phase), { clock }), first);
  const handle = dies.start(pipelineOf(first.allowedTools), { task: "x" });
  await expect(handle).rejects.toMatchObject({ code: "store_io" });
  await dies.host.close();
  const next = living(createHost(memory.connect(), { clock }), second);
  const result: RunResult<string> = await next.resume(pipelineOf(second.allowedTools), handle.runId, {
    allowChanged: true,
  });
  const events = await eventsOf(next.host, handle.runId);
  return {
    result,
    finished: eventData(events, "call.finished"),
    types: events.map(({ type }) => type),
    journal: JSON.stringify(await next.host.journal(handle.runId)),
  };
}

const CALL = /\/call$/;
const SETTLE = /\/approvals$/;
const FILE = import.meta.filename;

/** A tool that keeps what it was run with. */
function deploy(ran: Json[], spec: Parameters<typeof tool>[1] = {}): readonly Tool[] {
  const execute = (input: Json) => {
    ran.push(input);
    return Promise.resolve({ ok: true, output: "deployed" });
  };
  return [tool("Deploy", { execute, ...spec })];
}
const touching = (real: string): Parameters<typeof tool>[1] => ({
  subjects: () => [{ kind: "path", real, access: "write" }],
});
const filling = (force: boolean): Parameters<typeof tool>[1] => ({
  input: z.object({ to: z.string(), force: z.boolean().default(force) }),
});

interface Change {
  readonly first: Life;
  readonly second: Life;
  /** The tool, in the first process and in the second. */
  readonly tools?: readonly [Parameters<typeof tool>[1], Parameters<typeof tool>[1]];
}

async function found(stopsAt: RegExp, { first, second, tools: [was, is] = [{}, {}] }: Change) {
  const [before, ran]: [Json[], Json[]] = [[], []];
  const after = await takenUp(stopsAt, { ...first, tools: deploy(before, was) }, { ...second, tools: deploy(ran, is) });
  expect(before).toEqual([]);
  return { ...after, ran };
}

describe("a call that was approved before a kill and did not begin", () => {
  test("runs in the process that finds it, once, where nothing changed", async () => {
    const life: Life = { allowedTools: ["Deploy"] };
    const { result, ran } = await found(CALL, { first: life, second: life });
    expect([result.status, ran]).toEqual(["completed", [{ to: "test" }]]);
  });

  const changes: Readonly<Record<string, Change>> = {
    "with an envelope that does not hold it any more": {
      first: { allowedTools: ["Deploy"] },
      second: { allowedTools: ["Read"] },
    },
    "with an empty envelope": { first: { allowedTools: ["Deploy"] }, second: { allowedTools: [] } },
    "with a guard hook that vetoes": {
      first: { allowedTools: ["Deploy"] },
      second: { allowedTools: ["Deploy"], onCall: () => ({ veto: "not now" }) },
    },
    "with a shorter list of the session": {
      first: { mode: "allowlist", allow: ["Deploy"] },
      second: { mode: "allowlist", allow: ["Read"] },
    },
    "with a path that is protected by now": {
      first: { allowedTools: ["Deploy(**)"] },
      second: { allowedTools: ["Deploy(**)"], protectedPaths: [FILE] },
      tools: [touching(FILE), touching(FILE)],
    },
    "with a tool that touches something else by now": {
      first: { allowedTools: ["Deploy(*.ts)"] },
      second: { allowedTools: ["Deploy(*.ts)"] },
      tools: [touching(FILE), touching("/etc/passwd")],
    },
    "with a tool that does not take its arguments any more": {
      first: { allowedTools: ["Deploy"] },
      second: { allowedTools: ["Deploy"] },
      tools: [{}, { input: z.object({ from: z.string() }) }],
    },
  };
  test.each(Object.entries(changes))("%s: never runs", async (_how, change) => {
    const { result, ran, finished } = await found(CALL, change);
    expect([result.status, ran, finished.length]).toEqual(["completed", [], 1]);
    expect(finished[0]).toMatchObject({ tool: "Deploy", outcome: "error" });
  });

  test("under a wider envelope: never is another call than the one that was judged", async () => {
    const { ran } = await found(CALL, {
      first: { allowedTools: ["Deploy"] },
      second: { allowedTools: ["Deploy", "Bash", "Write"] },
    });
    expect(ran).toEqual([{ to: "test" }]);
  });
});

describe("a call that a person granted before a kill", () => {
  const asked: Life = { allowedTools: ["Read"], interactors: [approving()] };
  const later: Life = { allowedTools: ["Read"] };

  test.each([SETTLE, CALL])("where nothing changed (%s): runs as it was shown", async (stopsAt) => {
    const { ran } = await found(stopsAt, { first: asked, second: later, tools: [filling(false), filling(false)] });
    expect(ran).toEqual([{ to: "test", force: false }]);
  });

  const shown = { first: asked, second: later };
  const changes: Readonly<Record<string, Change>> = {
    "with a tool that makes other arguments of it": { ...shown, tools: [filling(false), filling(true)] },
    "with a tool that touches something else": { ...shown, tools: [touching(FILE), touching(`${FILE}.other`)] },
    "with a path that is protected by now": {
      first: asked,
      second: { ...later, protectedPaths: [FILE] },
      tools: [touching(FILE), touching(FILE)],
    },
    "with a guard hook that vetoes": { first: asked, second: { ...later, onCall: () => ({ veto: "not now" }) } },
  };
  const places = [
    ["resumed at its answer", SETTLE],
    ["resumed before it began", CALL],
  ] as const;
  test.each(
    Object.entries(changes).flatMap(([how, change]) => places.map(([place, at]) => [how, place, at, change] as const)),
  )("%s, %s: never runs", async (_how, _place, stopsAt, change) => {
    const { result, ran } = await found(stopsAt, change);
    expect([result.status, ran]).toEqual(["completed", []]);
  });

  test("while it wrote, with a tool that only reads by now: never uses its grant again, nor starts again", async () => {
    const [before, ran]: [Json[], Json[]] = [[], []];
    const reading = deploy(ran, { effect: "read" });
    const first = { ...asked, tools: deploy(before) };
    const { types, finished } = await takenUp(CALL, first, { ...later, tools: reading }, "done");
    expect([before.length, ran.length, finished.map(({ outcome }) => outcome)]).toEqual([1, 0, ["outcome_unknown"]]);
    const once = types.filter((type) => type === "grant.consumed" || type === "call.started");
    expect(once).toEqual(["grant.consumed", "call.started"]);
  });
});

test.each([SETTLE, CALL])(
  "an approval never covers a call of another tool with the same arguments (%s)",
  async (at) => {
    const ran: string[] = [];
    const tools = ["Check", "Deploy"].map((name) =>
      tool(name, { execute: async () => ({ ok: true, output: ran.push(name) }) }),
    );
    const calling = (name: string) =>
      pipeline({
        id: "other",
        input: z.object({}),
        stages: {
          state: work({
            allowedTools: ["Read"],
            act: async (scope) => {
              const [called] = await scope.calls(1, [{ id: "t1.c0", tool: name, input: { to: "test" } }]);
              return completed(called?.output ?? null);
            },
          }),
        },
        initial: "state",
        next: { state: ({ output }) => done(output) },
      });
    const memory = createMemoryJournals();
    const clock = handClock();
    const first = createHost(failingAt(memory.connect(), at), { clock });
    const asks = session({ model: noModel, clock, tools, interactors: [approving()], host: () => first });
    const handle = asks.start(calling("Check"), {});
    await expect(handle).rejects.toMatchObject({ code: "store_io" });
    await first.close();
    const next = session({ model: noModel, clock, tools, host: () => createHost(memory.connect(), { clock }) });
    await expect(next.resume(calling("Deploy"), handle.runId)).rejects.toMatchObject({ code: "journal_mismatch" });
    expect(ran).toEqual([]);
  },
);

test("a verdict of the envelope never covers a call with other arguments", async () => {
  const ran: Json[] = [];
  const sends = (input: Json) =>
    pipeline({
      id: "arguments",
      input: z.object({}),
      stages: {
        state: work({
          allowedTools: ["Deploy"],
          act: async ({ calls }) => {
            const [called] = await calls(1, [{ id: "t1.c0", tool: "Deploy", input }]);
            return completed(called?.output ?? null);
          },
        }),
      },
      initial: "state",
      next: { state: ({ output }) => done(output) },
    });
  const memory = createMemoryJournals();
  const clock = handClock();
  const first = createHost(failingAt(memory.connect(), CALL), { clock });
  const tools = deploy(ran);
  const handle = session({ model: noModel, clock, tools, host: () => first }).start(sends({ to: "test" }), {});
  await expect(handle).rejects.toMatchObject({ code: "store_io" });
  await first.close();
  const next = session({ model: noModel, clock, tools, host: () => createHost(memory.connect(), { clock }) });
  await next.resume(sends({ to: "prod" }), handle.runId);
  expect(ran).toEqual([]);
});

describe("the calls of a turn, where their tools came to read or to write in between", () => {
  const effects = ["read", "write"] as const;
  test.each(effects)(
    "where they came to %s: each has one verdict, one outcome, and runs at most once",
    async (effect) => {
      const ran: Json[] = [];
      const was = effect === "read" ? "write" : "read";
      const turn = ["t1.c0", "t1.c1", "t1.c2"];
      const made = (effect: "read" | "write") => deploy(ran, { effect });
      const state = work({
        allowedTools: ["Deploy"],
        act: async (scope) => {
          const calls = turn.map((id, n) => ({ id, tool: "Deploy", input: { n } }));
          return completed((await scope.calls(1, calls)).map(({ id }) => id));
        },
      });
      const pipe = pipeline({
        id: "turn",
        input: z.object({}),
        stages: { state },
        initial: "state",
        next: { state: ({ output }) => done(output) },
      });
      const memory = createMemoryJournals();
      const clock = handClock();
      const first = createHost(failingAt(memory.connect(), CALL), { clock });
      const dies = session({ model: noModel, clock, tools: made(was), host: () => first });
      const handle = dies.start(pipe, {});
      await expect(handle).rejects.toMatchObject({ code: "store_io" });
      await first.close();
      // What ran before the disk failed ran for reads, which may run again.
      ran.length = 0;
      const next = session({
        model: noModel,
        clock,
        tools: made(effect),
        host: () => createHost(memory.connect(), { clock }),
      });
      const result = await next.resume(pipe, handle.runId, { allowChanged: true });
      expect(result).toMatchObject({ status: "completed", output: turn });
      const decided = eventData(await eventsOf(next.host, handle.runId), "call.decided");
      expect(decided.map(({ callId }) => callId)).toEqual(turn);
      // Calls that were approved to read beside each other never write beside each other.
      expect(ran).toEqual(effect === "read" ? [{ n: 0 }, { n: 1 }, { n: 2 }] : []);
    },
  );
});

test("a question that was approved and not asked: is never asked where the envelope does not hold it any more", async () => {
  const asked: string[] = [];
  const interactor = { name: "me", answer: async () => ({ kind: "value" as const, value: asked.push("me") }) };
  const tools = [tool("Deploy", { effect: "ask", question: () => ({ question: "Really?", answer: {} }) })];
  const life: Life = { tools, interactors: [interactor] };
  const second: Life = { ...life, allowedTools: ["Read"] };
  const { result, finished } = await takenUp(/\/question$/, { ...life, allowedTools: ["Deploy"] }, second);
  expect([result.status, asked]).toEqual(["completed", []]);
  expect(finished[0]).toMatchObject({ tool: "Deploy", outcome: "error" });
});

test("a call that was granted before a cancel and did not begin: never runs, and its grant expires", async () => {
  const ran: Json[] = [];
  const clock = handClock();
  const store = createMemoryJournals().connect();
  let cancel = (): void => undefined;
  const append: typeof store.append = async (commit) => {
    if (SETTLE.test(commit.record.stepId)) {
      cancel();
      await turns();
    }
    return await store.append(commit);
  };
  const host = createHost(changed(store, { append }), { clock });
  const live = session({ model, clock, tools: deploy(ran), interactors: [approving()], host: () => host });
  const handle = live.start(pipelineOf(["Read"]), { task: "x" });
  cancel = () => void handle.cancel("enough");
  expect((await handle).status).toBe("cancelled");
  const events = await eventsOf(host, handle.runId);
  expect(ran).toEqual([]);
  expect(eventData(events, "grant.answered")).toMatchObject([{ answer: "approve" }]);
  expect(eventData(events, "grant.consumed")).toEqual([]);
  expect(eventData(events, "grant.expired")).toMatchObject([{ cause: "cancelled" }]);
});

test("a call that was approved before a kill, in a run that is cancelled while its tool gets ready again: never runs", async () => {
  const ran: Json[] = [];
  const memory = createMemoryJournals();
  const clock = handClock();
  const life = (host: RunHost, ready: () => Promise<void>) =>
    session({ model, clock, tools: deploy(ran, { ready }), host: () => host });
  const first = createHost(failingAt(memory.connect(), CALL), { clock });
  const handle = life(first, turns).start(pipelineOf(["Deploy"]), { task: "x" });
  await expect(handle).rejects.toMatchObject({ code: "store_io" });
  await first.close();
  const next = createHost(memory.connect(), { clock });
  const cancels = async (): Promise<void> => {
    void resumed.cancel("enough");
    await turns();
  };
  const resumed = life(next, cancels).resume(pipelineOf(["Deploy"]), handle.runId);
  expect((await resumed).status).toBe("cancelled");
  expect(ran).toEqual([]);
  expect(eventData(await eventsOf(next, handle.runId), "call.finished")).toMatchObject([{ outcome: "error" }]);
});

test("a call that was at work when its process died: never runs again because its tool calls itself a reader by now", async () => {
  const ran: Json[] = [];
  const dies = deploy(ran, { execute: () => Promise.reject(new Error("unreachable")) });
  const life: Life = { allowedTools: ["Deploy"] };
  // Its open record is kept, what came of it is not.
  const { result, journal } = await takenUp(
    CALL,
    { ...life, tools: dies },
    { ...life, tools: deploy(ran, { effect: "read" }) },
    "done",
  );
  expect([result.status, ran]).toEqual(["completed", []]);
  expect(journal).toContain("outcome_unknown");
});
