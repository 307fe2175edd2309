import { done, pipeline, type RunHost, stage, type ToolResult, to } from "@sluice/core";
import { createHost, createMemoryJournals, type MemoryJournals } from "@sluice/core/host";
import { createSession, scriptedModel } from "@sluice/stages";
import { authored, authoredExecutor, runInput } from "@sluice/workflows";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { ask, type GatewaySetUp, gatewayRun, leave, PLAN_FIRST, pipelineOf } from "../../support/gateway.ts";
import { handClock } from "../../support/hand-clock.ts";
import { until } from "../../support/mcp.ts";
import { json, tool } from "../../support/run-kit.ts";
import { tempFolder } from "../../support/tools.ts";

test("a run that its agent left continues in another process, in the same phase", async () => {
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  const memory = createMemoryJournals();
  const pipeline = await pipelineOf(PLAN_FIRST);
  const first = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()) });
  await ask(first, "get_state");
  await ask(first, "Read", { file_path: "a.txt" });
  await leave(first, "READY");
  await ask(first, "Write", { file_path: "b.txt", content: "b" });
  await first.close();
  const { runId = "" } = first;

  const second = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), resume: runId });
  const state = await ask(second, "get_state");
  expect(state.output).toMatchObject({ state: "build", runId });
  expect(state.text).toContain("The last call before that was Write");
  await leave(second, "BUILT");
  await leave(second, "GOOD");
  expect(await second.ended).toMatchObject({ status: "completed" });
});

/** A person, in another process, approves the call that a run waits for. */
async function approve(memory: MemoryJournals): Promise<void> {
  const person = createHost(memory.connect());
  const [request] = await person.requests();
  if (request === undefined) throw new Error("no request is open");
  const { requestId, digest } = request;
  await person.signal(request.runId, {
    name: `request/${requestId}`,
    payload: { kind: "approve", digest },
    digest,
    by: "test",
  });
  await person.close();
}

test("a run whose pipeline has changed is refused before its tools are listed", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const of = (pipeline: GatewaySetUp["pipeline"], more: Partial<GatewaySetUp> = {}) =>
    gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), ...more });
  const first = of(await pipelineOf(PLAN_FIRST));
  await ask(first, "get_state");
  const { runId = "" } = first;
  await first.close();
  const other = of(await pipelineOf({ ...PLAN_FIRST, context: { more: 1 } }), { resume: runId });
  await expect(other.tools()).rejects.toMatchObject({ code: "pipeline_changed" });
  const { text } = await ask(other, "get_state");
  expect(text).toContain("The run could not start");
  expect(other.now()).toMatchObject({ status: "ended", text });
  const same = of(await pipelineOf(PLAN_FIRST), { resume: runId });
  expect((await same.tools()).map(({ name }) => name)).toContain("Read");
});

test("a run that cannot go on says why, whatever its agent calls", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const pipeline = await pipelineOf(PLAN_FIRST);
  const of = (more: Partial<GatewaySetUp> = {}) =>
    gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), ...more });
  const first = of();
  await ask(first, "get_state");
  const second = of({ resume: first.runId ?? "" });
  const read = await ask(second, "Read", { file_path: "a.txt" });
  expect(read.text).toContain("The run failed");
  expect(await ask(second, "get_state")).toMatchObject({ text: read.text, output: { status: "ended" } });
  expect(second.now().end).toBeUndefined();
});

test("a journal that cannot be read for a moment costs an answer, and never the end of the run", async () => {
  const clock = handClock();
  const inner = createHost(createMemoryJournals().connect(), { clock });
  let isBroken = false;
  const records: RunHost["records"] = async (...place) => {
    if (isBroken) throw new Error("EIO: disk");
    return await inner.records(...place);
  };
  const host = new Proxy(inner, { get: (target, key) => (key === "records" ? records : Reflect.get(target, key)) });
  const slow = Promise.withResolvers<ToolResult>();
  const pipeline = await pipelineOf({
    id: "look",
    initial: "look",
    states: {
      look: { instructions: "Look.", allowed_tools: ["Slow"], on: { MORE: "more" } },
      more: { instructions: "Look again.", allowed_tools: ["Slow"], on: { DONE: "done" } },
      done: { type: "final" },
    },
  });
  const session = { tools: [tool("Slow", { execute: async () => await slow.promise })] };
  const run = gatewayRun({ pipeline, root: tempFolder().root, host, clock, session });
  await ask(run, "get_state");
  isBroken = true;
  const waiting = run.call({ tool: "Slow", input: {} });
  await vi.waitFor(() => expect(run.now().status).toBe("busy"));
  clock.turn(45_000);
  expect(await waiting.answer).toMatchObject({ ok: false, output: { code: "journal_unreadable" } });
  slow.resolve({ ok: true, output: "slow" });
  expect(await ask(run, "Slow")).toMatchObject({ ok: true, output: "slow" });
  await leave(run, "MORE");
  expect(run.now().state).toBe("more");
  await leave(run, "DONE");
  expect(await run.ended).toMatchObject({ status: "completed" });
});

test("a call of a tool that no state lists runs when it is made again in another process, after a person has approved it", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const pipeline = await pipelineOf({
    id: "look",
    initial: "look",
    states: {
      look: { instructions: "Look.", allowed_tools: ["Read"], on: { DONE: "done" } },
      done: { type: "final" },
    },
  });
  const write = { tool: "Write", input: { file_path: "a.txt", content: "written\n" } } as const;
  const first = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), wait: true });
  const asked = first.call(write);
  await until(() => first.now().status === "waiting");
  const { runId = "" } = first;
  await first.close();
  expect((await asked.answer).ok).toBe(false);
  await approve(memory);
  const second = gatewayRun({
    pipeline,
    root: folder.root,
    host: createHost(memory.connect()),
    wait: true,
    resume: runId,
  });
  expect(await ask(second, write.tool, write.input)).toMatchObject({ ok: true });
  expect(folder.text("a.txt")).toBe("written\n");
});

test("a call with a known secret is the same call in another process", async () => {
  const memory = createMemoryJournals();
  const document = {
    id: "count",
    initial: "count",
    states: {
      count: { instructions: "Count.", allowed_tools: ["Count"], on: { DONE: "done" } },
      done: { type: "final" },
    },
  };
  let times = 0;
  const count = tool("Count", {
    input: z.object({ text: z.string() }),
    effect: "write",
    execute: async () => {
      times += 1;
      return { ok: true, output: times };
    },
  });
  const session = { tools: [count], env: { MY_TOKEN: "q8w7e6r5t4y3u2i1" } };
  const { root } = tempFolder();
  const of = async (resume?: string) =>
    gatewayRun({
      pipeline: await pipelineOf(document),
      root,
      host: createHost(memory.connect()),
      session,
      ...(resume === undefined ? {} : { resume }),
    });
  const input = { text: "key q8w7e6r5t4y3u2i1" };
  const first = await of();
  await ask(first, "Count", input);
  await first.close();
  const second = await of(first.runId);
  expect((await ask(second, "Count", input)).text).toContain("It was not run a second time");
  expect(times).toBe(1);
});

test("a call with what looks like a secret is the same call in another process, and its result is not repeated by running it", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const document = {
    ...PLAN_FIRST,
    states: { ...PLAN_FIRST.states, plan: { ...PLAN_FIRST.states.plan, allowed_tools: ["Write"] } },
  };
  const write = { file_path: "a.env", content: "STAGING_PASSWORD=hunter2 # first" };
  const first = gatewayRun({
    pipeline: await pipelineOf(document),
    root: folder.root,
    host: createHost(memory.connect()),
  });
  expect((await ask(first, "Write", write)).ok).toBe(true);
  const { runId = "" } = first;
  await first.close();
  folder.put("a.env", "changed since\n");
  const second = gatewayRun({
    pipeline: await pipelineOf(document),
    root: folder.root,
    host: createHost(memory.connect()),
    resume: runId,
  });
  expect((await ask(second, "Write", write)).text).toContain("It was not run a second time");
  expect(folder.text("a.env")).toBe("changed since\n");
});

const note = z.object({});
const work = (prompt: string) =>
  stage({ prompt, allowedTools: ["Read"], completionTool: "finish", completionSchema: note, turnCap: 9 });
const twoStates = pipeline({
  id: "two",
  input: runInput,
  stages: { a: work("First."), b: work("Second.") },
  initial: "a",
  next: { a: () => to("b"), b: () => done("b") },
});

test.each([{ event: "finish" }, { event: "finish", data: {} }, { event: "finish", data: null }])(
  "the transition %j is the same call in another process, and completes no second state",
  async (input) => {
    const folder = tempFolder();
    const memory = createMemoryJournals();
    const first = gatewayRun({ pipeline: twoStates, root: folder.root, host: createHost(memory.connect()) });
    await ask(first, "transition", input);
    const { runId = "" } = first;
    await first.close();
    const second = gatewayRun({
      pipeline: twoStates,
      root: folder.root,
      host: createHost(memory.connect()),
      resume: runId,
    });
    expect((await ask(second, "transition", input)).text).toContain("It was not run a second time");
    expect(second.now()).toMatchObject({ status: "working", state: "b" });
  },
);

test("an approved call of a model's state runs in a gateway that continues the run, also after a reply without content", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const write = { file_path: "a.txt", content: "x" };
  const session = createSession({
    cwd: folder.root,
    host: createHost(memory.connect()),
    model: scriptedModel({ stages: { a: [{ text: "" }, { calls: [{ tool: "Write", input: write }] }] } }),
    wait: true,
    sandbox: "off",
    env: {},
  });
  const run = session.start(twoStates, { task: "Go." });
  await vi.waitFor(async () => expect(await session.host.requests()).toHaveLength(1), 10_000);
  await session.close();
  expect(await run).toMatchObject({ status: "suspended" });
  await approve(memory);
  const resumed = gatewayRun({
    pipeline: twoStates,
    root: folder.root,
    host: createHost(memory.connect()),
    wait: true,
    resume: run.runId,
  });
  expect(await ask(resumed, "Write", write)).toMatchObject({ ok: true });
  expect(folder.text("a.txt")).toBe("x");
});

test("an approved call of a pipeline that the agent wrote runs when it is made again in another process, whatever the tool", async () => {
  const { folder, asked, resumed } = await writtenAndApproved("w");
  expect(await ask(resumed, asked.tool, asked.input)).toMatchObject({ ok: true });
  expect(folder.text("a.txt")).toBe("x");
});

test.each(["w", "auto"])(
  "an approved call of a pipeline that the agent wrote, in a state called %s, does not run in another process unless the agent makes it again",
  async (name) => {
    const { folder, resumed } = await writtenAndApproved(name);
    await ask(resumed, "get_state");
    await leave(resumed, "DONE");
    expect(await resumed.ended).toMatchObject({ status: "completed" });
    expect(() => folder.text("a.txt")).toThrow("ENOENT");
  },
);

/** A run whose agent wrote a pipeline with one state and made a call there that a person approved after the gateway had closed. */
async function writtenAndApproved(name: string) {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const outer = pipeline({
    id: "outer",
    input: runInput,
    stages: { auto: authored({ allow: { tools: ["Read"] }, approval: "never" }) },
    initial: "auto",
    next: { auto: ({ output }) => done(json(output)) },
  });
  const document = {
    id: "made",
    initial: name,
    states: {
      [name]: { allowed_tools: ["Read"], instructions: "Write.", on: { DONE: "done" } },
      done: { type: "final" },
    },
  };
  const opened = (more: Partial<GatewaySetUp>) =>
    gatewayRun({
      pipeline: outer,
      root: folder.root,
      host: createHost(memory.connect()),
      session: { executors: [authoredExecutor] },
      wait: true,
      ...more,
    });
  const first = opened({});
  await ask(first, "transition", { event: "create_pipeline", data: { document } });
  const call = { tool: "Write", input: { file_path: "a.txt", content: "x" } };
  const answer = first.call(call).answer;
  await until(() => first.now().status === "waiting");
  const { runId = "" } = first;
  await first.close();
  expect((await answer).ok).toBe(false);
  await approve(memory);
  return { folder, asked: call, resumed: opened({ resume: runId }) };
}
