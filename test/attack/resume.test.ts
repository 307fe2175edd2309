import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type AllowedTool, callbackInteractor, done, type Json, pipeline, type Tool, to } from "@sluice/core";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { type RunHandle, type RunResult, type SessionOptions, scriptedModel, subPipeline } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { approving, bash, type Call, eventData, read, type Scene, scene, write } from "../support/attack.ts";
import { soon } from "../support/people-kit.ts";
import { caller, completed, eventsOf, noModel, session, type TestSession, tool, work } from "../support/run-kit.ts";
import { calling, failingAt, working } from "../support/stopped-runs.ts";

/** One process of a run: its session in the scene's store, with a model that makes these calls. */
interface Life extends Partial<SessionOptions> {
  readonly allowedTools?: readonly AllowedTool[] | undefined;
}
function pipelineOf(allowedTools: readonly AllowedTool[] | undefined) {
  return working({ id: "resumed", allowedTools });
}
function process(here: Scene, calls: readonly Call[], life: Life): TestSession {
  const { allowedTools: _allowedTools, clock: _clock, ...options } = life;
  return session({
    env: { PATH: globalThis.process.env.PATH },
    ...options,
    cwd: life.cwd ?? here.root,
    model: calling(calls),
    host: () => sqliteHost(here.path(".sluice/store")),
  });
}

/** Starts a run that stops at its first request, and ends the process. */
async function suspended(here: Scene, calls: readonly Call[], life: Life = {}): Promise<string> {
  const first = process(here, calls, { ...life, wait: true });
  const handle = first.start(pipelineOf("allowedTools" in life ? life.allowedTools : ["Read"]), { task: "x" });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if ((await first.host.requests(handle.runId).catch(() => [])).length > 0) break;
  }
  await handle.suspend();
  expect((await handle).status).toBe("suspended");
  await first.close();
  return handle.runId;
}
/** Answers the open request from another process. */
async function answer(here: Scene, runId: string, kind: string, more: Record<string, Json> = {}): Promise<string> {
  const host = sqliteHost(here.path(".sluice/store"));
  const [request] = await host.requests(runId);
  if (request === undefined) throw new Error("no request is open");
  const outcome = await host.signal(runId, {
    name: `request/${request.requestId}`,
    payload: { kind, digest: request.digest, ...more },
    digest: request.digest,
    by: "person",
  });
  await host.close();
  return outcome;
}
async function resumed(
  here: Scene,
  runId: string,
  calls: readonly Call[],
  life: Life = {},
  options: { allowChanged?: boolean } = {},
) {
  const next = process(here, calls, life);
  const result: RunResult<string> = await next.resume(
    pipelineOf("allowedTools" in life ? life.allowedTools : ["Read"]),
    runId,
    options,
  );
  const events = await eventsOf(next.host, runId);
  const journal = await next.host.journal(runId);
  await next.close();
  return { result, events, journal, denied: result.denied.map(({ cause }) => cause) };
}
const ran = (events: Awaited<ReturnType<typeof resumed>>["events"], name: string): number =>
  eventData(events, "call.started").filter((data) => data.tool === name).length;

test("a folder that became a link while the run was suspended: never takes the granted write", async () => {
  const here = scene();
  const runId = await suspended(here, [write("docs/new.md")]);
  await answer(here, runId, "approve");
  renameSync(here.path("docs"), here.path("old"));
  symlinkSync(join(here.outer, "beside"), here.path("docs"));
  const { result, events } = await resumed(here, runId, [write("docs/new.md")]);
  expect(result.status).toBe("completed");
  expect(eventData(events, "call.finished")).toMatchObject([{ tool: "Write", outcome: "error" }]);
});

test("an approval given twice over two processes: never runs the call twice", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt"), write("new.txt")]);
  expect(await answer(here, runId, "approve")).toBe("accepted");
  const { events, denied } = await resumed(here, runId, [write("new.txt"), write("new.txt")]);
  expect([ran(events, "Write"), eventData(events, "grant.consumed").length, denied]).toEqual([1, 1, ["no_interactor"]]);
});

test("a denial from before: never is asked about again on resume", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  await answer(here, runId, "deny");
  const { events, denied } = await resumed(here, runId, [write("new.txt")], { interactors: [approving()] });
  expect([ran(events, "Write"), denied]).toEqual([0, ["denied"]]);
});

test("an approval for another digest, put straight into the store: never mints a token", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  await answer(here, runId, "approve", { digest: "0".repeat(64) });
  const { events, denied } = await resumed(here, runId, [write("new.txt")]);
  expect([ran(events, "Write"), denied]).toEqual([0, ["denied"]]);
});

test("a model that says other arguments when the run continues: never gets what was granted for the recorded ones", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt", "asked")]);
  await answer(here, runId, "approve");
  const { events } = await resumed(here, runId, [write("../outside.txt", "other")]);
  expect(ran(events, "Write")).toBe(1);
  expect(here.text("new.txt")).toBe("asked");
});

test("a wider envelope: never lets a recorded run continue unasked, nor turns its verdicts when accepted", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt"), write("two.txt")]);
  await answer(here, runId, "deny");
  const wide = { allowedTools: ["Read", "Write"] } as const;
  await expect(resumed(here, runId, [], wide)).rejects.toMatchObject({ code: "pipeline_changed" });
  const { denied } = await resumed(here, runId, [write("new.txt"), write("two.txt")], wide, { allowChanged: true });
  expect(denied).toEqual(["denied"]);
  expect(() => here.text("new.txt")).toThrow();
});

test("another mode, workspace or tool: never takes the run up", async () => {
  const here = scene();
  const own = (input: object) => tool("Own", { input: { type: "object", ...input } });
  const life: Life = { allowedTools: ["Read", "Own"], tools: [own({})] };
  const runId = await suspended(here, [write("new.txt")], life);
  await answer(here, runId, "approve");
  mkdirSync(join(here.outer, "elsewhere"));
  await expect(resumed(here, runId, [], { ...life, mode: "yolo" })).rejects.toMatchObject({ code: "mode_mismatch" });
  await expect(resumed(here, runId, [], { ...life, cwd: join(here.outer, "elsewhere") })).rejects.toMatchObject({
    code: "workspace_mismatch",
  });
  await expect(resumed(here, runId, [], { ...life, tools: [own({ required: ["x"] })] })).rejects.toMatchObject({
    code: "tools_changed",
  });
  expect(() => here.text("new.txt")).toThrow();
});

test("a tool whose effect is another one: never gets what was granted, in the envelope or outside of it", async () => {
  for (const allowedTools of [["Read"], ["Read", "Own"]]) {
    const here = scene();
    const life: Life = { allowedTools, tools: [tool("Own", { effect: "read" })] };
    const asked = allowedTools.includes("Own") ? write("new.txt") : (["Own", {}] as const);
    const runId = await suspended(here, [asked], life);
    await answer(here, runId, "approve");
    const changed = { ...life, tools: [tool("Own", { effect: "write" })] };
    await expect(resumed(here, runId, [], changed)).rejects.toMatchObject({
      code: "tools_changed",
      detail: { tools: ["Own has the effect write instead of read"] },
    });
    expect(() => here.text("new.txt")).toThrow();
  }
});

test("a tool that only read when two of its calls were asked about, and writes since: never runs them side by side", async () => {
  const here = scene();
  const ran: string[] = [];
  const model = () =>
    scriptedModel({
      stages: {
        work: [
          { calls: ["a", "b"].map((to) => ({ tool: "Own", input: { to } })) },
          { calls: [{ tool: "finish", input: { text: "done" } }] },
        ],
      },
    });
  const live = (effect: "read" | "write", more: Pick<SessionOptions, "wait" | "interactors">): TestSession =>
    session({
      ...{ cwd: here.root, model: model(), host: () => sqliteHost(here.path(".sluice/store")), ...more },
      tools: [tool("Own", { effect, execute: async () => ({ ok: true, output: ran.push(effect) }) })],
    });
  const first = live("read", { wait: true });
  const handle = first.start(pipelineOf(["Read"]), { task: "x" });
  await soon(async () => (await first.host.requests(handle.runId)).length === 2);
  await handle.suspend();
  await first.close();
  const second = live("write", { interactors: [approving()] });
  const { status } = await second.resume(pipelineOf(["Read"]), handle.runId, { allowChanged: true });
  expect([status, ran]).toEqual(["completed", []]);
  await second.close();
});

test("a tool that was gone in one life, which a person allowed: never returns as another one", async () => {
  const here = scene();
  const own = (input: object): Life => ({
    allowedTools: ["Read", { tool: "Own", optional: true }],
    tools: [tool("Own", { input: { type: "object", ...input } })],
  });
  const calls = [["Own", {}], write("a.txt"), write("b.txt")] as const;
  const runId = await suspended(here, calls, own({}));
  await answer(here, runId, "deny");
  const without = { ...own({}), tools: [] };
  const second = process(here, calls, { ...without, wait: true });
  await expect(second.resume(pipelineOf(without.allowedTools), runId)).rejects.toMatchObject({ code: "tools_changed" });
  const handle = second.resume(pipelineOf(without.allowedTools), runId, { allowChanged: true });
  await soon(async () => (await second.host.requests(runId)).length > 0);
  await handle.suspend();
  await second.close();
  await expect(resumed(here, runId, calls, own({ required: ["x"] }))).rejects.toMatchObject({ code: "tools_changed" });
  expect((await resumed(here, runId, calls, without)).result.status).toBe("completed");
});

test("a tool with another schema: never gets what was granted outside of the envelope, nor does one in place of a built-in tool", async () => {
  const own = (name: string, input: object) => tool(name, { input: { type: "object", ...input } });
  for (const name of ["Own", "Write"]) {
    const here = scene();
    const before: Life = { allowedTools: ["Read"], tools: name === "Own" ? [own(name, {})] : [] };
    const call = name === "Own" ? (["Own", { file: "new.txt" }] as const) : write("new.txt");
    const runId = await suspended(here, [call], before);
    await answer(here, runId, "approve");
    const changed = { ...before, tools: [own(name, { properties: { force: { type: "boolean" } } })] };
    await expect(resumed(here, runId, [], changed)).rejects.toMatchObject({
      code: "tools_changed",
      detail: { tools: [`${name} has a different schema`] },
    });
    const { events } = await resumed(here, runId, [call], before);
    expect(ran(events, name)).toBe(1);
  }
});

test("a tool that came with a resume: never gets what was granted before it changed", async () => {
  for (const allowedTools of [["Read"], ["Read", { tool: "Own", optional: true }]] as const) {
    const here = scene();
    const own = (effect: "read" | "write", input: object): Life => ({
      allowedTools,
      tools: [tool("Own", { effect, input: { type: "object", ...input } })],
    });
    const calls = [write("a.txt"), ["Own", { to: "prod" }], write("b.txt")] as const;
    const runId = await suspended(here, calls, { allowedTools });
    await answer(here, runId, "deny");
    // The second process brings the tool, and stops at the next request.
    const second = process(here, calls, { ...own("read", {}), wait: true });
    const handle = second.resume(pipelineOf(allowedTools), runId);
    await soon(async () => (await second.host.requests(runId)).length > 0);
    await handle.suspend();
    await handle;
    await second.close();
    await answer(here, runId, "approve");
    for (const [changed, what] of [
      [own("write", {}), "Own has the effect write instead of read"],
      [own("read", { required: ["to"] }), "Own has a different schema"],
    ] as const)
      await expect(resumed(here, runId, calls, changed)).rejects.toMatchObject({
        code: "tools_changed",
        detail: { tools: [what] },
      });
    const { result, events } = await resumed(here, runId, calls, own("read", {}));
    expect([result.status, ran(events, "Own")]).toEqual(["completed", 1]);
  }
});

test.each(["verdicts", "approvals"])(
  "a tool that came with a resume, whose process dies before the %s of its call: never gets as another one a call that a model made of it",
  async (step) => {
    const here = scene();
    const memory = createMemoryJournals();
    const allowedTools: readonly AllowedTool[] =
      step === "verdicts" ? ["Read", { tool: "Own", optional: true }] : ["Read"];
    const own = (...required: string[]) => tool("Own", { input: { type: "object", required } });
    const life = (tools: readonly Tool[], dies?: RegExp) => {
      const store = dies === undefined ? memory.connect() : failingAt(memory.connect(), dies);
      const model = calling([["Own", { to: "prod" }]]);
      const interactors = [approving()];
      return session({ cwd: here.root, model, tools, interactors, host: () => createHost(store) });
    };
    const dead = async (live: TestSession, begin: (live: TestSession) => RunHandle<string>) => {
      const handle = begin(live);
      await expect(handle).rejects.toMatchObject({ code: "store_io" });
      await live.close();
      return handle.runId;
    };
    const spec = working({ id: "late", allowedTools });
    const runId = await dead(life([], /turn\/1\/model$/), (live) => live.start(spec, { task: "x" }));
    await dead(life([own("to")], new RegExp(`turn/1/0/${step}$`)), (live) => live.resume(spec, runId));
    await expect(life([own()]).resume(spec, runId)).rejects.toMatchObject({
      code: "tools_changed",
      detail: { tools: ["Own has a different schema"] },
    });
    const last = life([own("to")]);
    expect((await last.resume(spec, runId)).status).toBe("completed");
    expect(ran(await eventsOf(last.host, runId), "Own")).toBe(1);
  },
);

test("a tool that changed before anything used it: never gets as the old one what was granted to the new one", async () => {
  const here = scene();
  const own = (...required: string[]): Life => ({
    allowedTools: ["Read"],
    tools: [tool("Own", { input: { type: "object", required } })],
  });
  const calls = [write("a.txt"), ["Own", { to: "prod" }]] as const;
  const runId = await suspended(here, calls, own());
  await answer(here, runId, "deny");
  const second = process(here, calls, { ...own("to"), wait: true });
  const handle = second.resume(pipelineOf(["Read"]), runId);
  await soon(async () => (await second.host.requests(runId)).length > 0);
  await handle.suspend();
  await handle;
  await second.close();
  await answer(here, runId, "approve");
  await expect(resumed(here, runId, calls, own())).rejects.toMatchObject({
    code: "tools_changed",
    detail: { tools: ["Own has a different schema"] },
  });
  const { events } = await resumed(here, runId, calls, own("to"));
  expect(ran(events, "Own")).toBe(1);
});

test("a tool that came with a fork: never gets what was granted before it changed", async () => {
  const here = scene();
  const own = (effect: "read" | "write"): Life => ({ allowedTools: ["Read"], tools: [tool("Own", { effect })] });
  const calls = [["Own", {}]] as const;
  const runId = await suspended(here, [write("a.txt")], { allowedTools: ["Read"] });
  const forking = process(here, calls, { ...own("read"), wait: true });
  const fork = forking.fork(pipelineOf(["Read"]), runId, { from: "work#1" });
  await soon(async () => (await forking.host.requests(fork.runId)).length > 0);
  await fork.suspend();
  await fork;
  const [request] = await forking.host.requests(fork.runId);
  if (request === undefined) throw new Error("no request is open");
  await forking.close();
  const host = sqliteHost(here.path(".sluice/store"));
  const { requestId, digest } = request;
  await host.signal(fork.runId, {
    name: `request/${requestId}`,
    payload: { kind: "approve", digest },
    digest,
    by: "person",
  });
  await host.close();
  await expect(resumed(here, fork.runId, calls, own("write"))).rejects.toMatchObject({ code: "tools_changed" });
  const { events } = await resumed(here, fork.runId, calls, own("read"));
  expect(ran(events, "Own")).toBe(1);
});

test("a tool that came while a child worked: never is called as another one in a fork that begins inside the child", async () => {
  const here = scene();
  const calls = work({
    allowedTools: [{ tool: "Own", optional: true }],
    act: async (scope) => {
      await scope.ask({ name: "ask", question: { question: "now?", answer: { type: "string" } } });
      return completed(await caller(scope)("Own", { to: "prod" }));
    },
  });
  const inner = pipeline({
    id: "inner",
    input: z.object({}),
    stages: { one: calls, two: calls },
    initial: "one",
    next: { one: () => to("two"), two: () => done("ok") },
  });
  const outer = pipeline({
    id: "outer",
    input: z.object({}),
    pipelines: { inner },
    stages: { state: subPipeline({ pipeline: "inner", input: {} }) },
    initial: "state",
    next: { state: () => done("ok") },
  });
  const executed: Json[] = [];
  const own = (...required: string[]) =>
    tool("Own", {
      input: { type: "object", required },
      execute: async () => ({ ok: true, output: executed.push("Own") }),
    });
  const live = session({ cwd: here.root, model: noModel, wait: true });
  const life = (tools: readonly Tool[], answers: number) => {
    let left = answers;
    const person = callbackInteractor("ann", () => (left-- > 0 ? { kind: "value", value: "yes" } : undefined));
    return session({ cwd: here.root, model: noModel, wait: true, tools, host: live.host, interactors: [person] });
  };
  const suspended = async (question: string, run: RunHandle<string>): Promise<string> => {
    await soon(async () =>
      (await live.host.requests(run.runId)).some(({ requestId }) => requestId.startsWith(question)),
    );
    await run.suspend();
    return run.runId;
  };
  const runId = await suspended("one#1", life([], 0).start(outer, {}));
  await suspended("two#1", life([own("to")], 1).resume(outer, runId));
  expect(executed).toHaveLength(1);
  const from = { from: "two#1:inner" };
  await expect(life([own()], 1).fork(outer, runId, from)).rejects.toMatchObject({
    code: "tools_changed",
    detail: { tools: ["Own has a different schema"] },
  });
  expect(executed).toHaveLength(1);
  expect((await life([own("to")], 1).fork(outer, runId, from)).status).toBe("completed");
  expect(executed).toHaveLength(2);
});

test("a tool that one process brought and nothing used is not missed later", async () => {
  const here = scene();
  const life: Life = { allowedTools: undefined };
  const runId = await suspended(here, [write("a.txt"), write("b.txt")], life);
  const second = process(here, [], { ...life, tools: [tool("Extra")], wait: true });
  const handle = second.resume(pipelineOf(undefined), runId);
  await soon(async () => (await second.host.requests(runId)).length > 0);
  await handle.suspend();
  await handle;
  await second.close();
  expect((await resumed(here, runId, [], life)).result.status).toBe("completed");
});

test("another list of mode allowlist: never is in force without a record", async () => {
  const here = scene();
  const life: Life = { allowedTools: ["Read"], mode: "allowlist", allow: ["Read"] };
  const runId = await suspended(here, [write("a.txt"), write("b.txt")], life);
  const { allow: _, ...same } = life;
  const lists: Json[] = [];
  for (const allow of [["Read"], ["Read", "Write"], ["Read", "Write"]]) {
    const next = process(here, [], { ...same, allow, wait: true });
    const handle = next.resume(pipelineOf(["Read"]), runId);
    await soon(async () => (await next.host.requests(runId)).length > 0);
    await handle.suspend();
    await handle;
    lists.push(eventData(await eventsOf(next.host, runId), "run.resumed").at(-1)?.allow ?? null);
    await next.close();
  }
  expect(lists).toEqual([null, ["Read", "Write"], null]);
});

test("a variable that a resume declares secret: never is missing in the record of names", async () => {
  const here = scene();
  const runId = await suspended(here, [write("a.txt")], { allowedTools: ["Read"], secrets: ["FIRST"] });
  const names: Json[] = [];
  for (const secrets of [["FIRST"], ["SECOND"], ["SECOND", "FIRST"]]) {
    const next = process(here, [], { allowedTools: ["Read"], secrets, wait: true });
    const handle = next.resume(pipelineOf(["Read"]), runId);
    await soon(async () => (await next.host.requests(runId)).length > 0);
    await handle.suspend();
    await handle;
    names.push(eventData(await eventsOf(next.host, runId), "run.resumed").at(-1)?.secrets ?? null);
    await next.close();
  }
  expect(names).toEqual([null, ["SECOND"], null]);
});

test("an answer to a question without its digest: never counts", async () => {
  const here = scene();
  const life: Life = { allowedTools: ["AskUser"] };
  const asks = ["AskUser", { question: "Which?" }] as const;
  const runId = await suspended(here, [asks], life);
  const host = sqliteHost(here.path(".sluice/store"));
  const [request] = await host.requests(runId);
  if (request === undefined) throw new Error("no request is open");
  const payload = { kind: "value", value: "this one" };
  await host.signal(runId, { name: `request/${request.requestId}`, payload, digest: request.digest, by: "person" });
  await host.close();
  const { events } = await resumed(here, runId, [asks], life);
  expect(eventData(events, "call.finished").map(({ outcome }) => outcome)).toEqual(["error"]);
  expect(JSON.stringify(events)).not.toContain("this one");
});

test("a verdict turned in the database: never is followed", async () => {
  const here = scene();
  const runId = await suspended(here, [read("a.txt"), write("new.txt")]);
  const db = new DatabaseSync(here.path(".sluice/store/journal.db"));
  db.exec("UPDATE records SET value = replace(value, '\"ask\"', '\"approved\"')");
  db.close();
  await expect(resumed(here, runId, [read("a.txt"), write("new.txt")])).rejects.toMatchObject({ class: "Host" });
  expect(() => here.text("new.txt")).toThrow();
});

test("an answer put into the database without a digest: never mints a token", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  const host = sqliteHost(here.path(".sluice/store"));
  const [request] = await host.requests(runId);
  await host.signal(runId, { name: `request/${request?.requestId}`, payload: { kind: "approve" }, by: "attacker" });
  await host.close();
  const { events } = await resumed(here, runId, [write("new.txt")]);
  expect(ran(events, "Write")).toBe(0);
});

test("a guard hook that vetoes now: never is passed over by an approval from before", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  await answer(here, runId, "approve");
  const { denied } = await resumed(here, runId, [write("new.txt")], { onCall: () => ({ veto: "not now" }) });
  expect(denied).toEqual(["hook"]);
});

test("a protected path that is new: never is written by a call that was granted before", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  await answer(here, runId, "approve");
  symlinkSync("sluice.config.ts", here.path("new.txt"));
  const { events } = await resumed(here, runId, [write("new.txt")]);
  expect(here.text("sluice.config.ts")).toContain("config");
  expect(eventData(events, "call.finished")).toMatchObject([{ outcome: "error" }]);
});

test("a command that was granted and whose link turned meanwhile: never runs", async () => {
  const here = scene();
  symlinkSync("a.txt", here.path("link"));
  const runId = await suspended(here, [bash("cat link")]);
  await answer(here, runId, "approve");
  renameSync(here.path("link"), here.path("old"));
  symlinkSync("../outside.txt", here.path("link"));
  const { journal } = await resumed(here, runId, [bash("cat link")]);
  expect(JSON.stringify(journal)).not.toContain("OUTSIDE-SECRET");
  expect(verifyJournal(journal).faults).toEqual([]);
});

test("two processes at once: never both own the run", async () => {
  const here = scene();
  const runId = await suspended(here, [write("new.txt")]);
  const first = process(here, [write("new.txt")], { wait: true });
  const second = process(here, [write("new.txt")], { wait: true });
  const going = first.resume(pipelineOf(["Read"]), runId);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await expect(second.resume(pipelineOf(["Read"]), runId)).rejects.toMatchObject({ class: "Host" });
  await going.suspend();
  await Promise.all([first.close(), second.close()]);
  expect(() => here.text("new.txt")).toThrow();
});
