import {
  callbackInteractor,
  done,
  type Pipeline,
  type PipelineMeta,
  pipeline,
  type RetryPolicy,
  route,
  type StateLimits,
  stage,
  state,
  to,
} from "@sluice/core";
import { type RunHandle, replayRun, scriptedModel, subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  session,
  tool,
  twoHosts,
  work,
  workExecutor,
} from "../support/run-kit.ts";

const finish = (tool: string, input: object) => ({ calls: [{ tool, input: JSON.parse(JSON.stringify(input)) }] });
/** The second turn of `execute` asks a person, so that a run stops there with a past behind it. */
const model = scriptedModel({
  stages: {
    plan: [finish("submit_plan", { steps: ["one"] })],
    execute: [finish("Own", {}), finish("submit_work", { text: "done", risk: 1 })],
    review: [finish("submit_review", { text: "good" })],
  },
});

const planSchema = z.object({ steps: z.array(z.string()).min(1) });
const textSchema = z.object({ text: z.string() });
interface Stage {
  readonly prompt?: string;
  readonly allowedTools?: readonly string[];
  readonly turnCap?: number;
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
}

function plan(more: Stage = {}) {
  const usual = { prompt: "Plan.", allowedTools: [], turnCap: 3, ...more };
  return stage({ ...usual, completionTool: "submit_plan", completionSchema: planSchema });
}
function execute(more: Stage = {}, completionSchema: z.ZodType<object> = textSchema) {
  return stage({
    prompt: "Do it.",
    allowedTools: [],
    turnCap: 4,
    ...more,
    completionTool: "submit_work",
    completionSchema,
  });
}

/** The pipeline that runs are started with here. */
function first(meta: PipelineMeta = {}): Pipeline<{ task: string }, unknown> {
  return pipeline({
    id: "changing",
    meta,
    input: z.object({ task: z.string() }),
    stages: { plan: plan(), execute: execute() },
    initial: "plan",
    next: { plan: route(["execute"], () => to("execute")), execute: () => done("first") },
  });
}

/** A run of it that waits for a grant in `execute`, left by its process; and how another process looks at it. */
async function left() {
  const { clock, first: one, second: other } = twoHosts();
  const tools = [tool("Own")];
  const before = session({ clock, host: one, model, tools, wait: true });
  const handle = before.start(first(), { task: "x" });
  await eventually(async () => (await one.requests(handle.runId).catch(() => [])).length > 0);
  await handle.suspend();
  await before.close();
  await one.close();
  const after = session({ clock, host: other, model, tools });
  return { runId: handle.runId, after, host: other };
}

async function refusal(made: { readonly then: PromiseLike<unknown>["then"] }): Promise<unknown> {
  return await made.then(
    () => "it went on",
    (thrown: unknown) => thrown,
  );
}

function second(): Pipeline<{ task: string; why?: string | undefined }, unknown> {
  const wider = z.object({ text: z.string().max(9), risk: z.number() });
  const review = stage({
    prompt: "Review.",
    allowedTools: [],
    completionTool: "submit_review",
    completionSchema: textSchema,
    turnCap: 1,
  });
  return pipeline({
    id: "changing",
    input: z.object({ task: z.string(), why: z.string().optional() }),
    stages: {
      plan: plan({ prompt: "Plan well." }),
      execute: execute(
        { allowedTools: ["Read"], turnCap: 6, retryPolicy: { maxAttempts: 2 }, limits: { maxTokens: 9_000 } },
        wider,
      ),
      review,
    },
    initial: "plan",
    next: {
      plan: route(["execute", "review"], () => to("execute")),
      execute: () => to("review"),
      review: ({ output }) => done(output.text),
    },
  });
}

test("a changed pipeline is refused with a list of everything that is other", async () => {
  const { runId, after } = await left();
  expect(await refusal(after.resume(second(), runId))).toMatchObject({
    code: "pipeline_changed",
    detail: {
      changes: [
        "the pipeline: input $.why was added (string, optional)",
        "state plan: prompt changed",
        "state plan: route when completed changed from execute to execute, review",
        'state execute: completionSchema $.text changed from string to string {"maxLength":9}',
        "state execute: turnCap changed from 4 to 6",
        "state execute: allowedTools changed from empty to Read",
        "state execute: completionSchema $.risk was added (number)",
        "state execute: retryPolicy maxAttempts was added (2)",
        "state execute: limits maxTokens was added (9000)",
        "state review was added",
      ],
    },
  });
});

test("a pipeline that gains the release of the agent's own tools at its end is refused; one that only says more about itself is not", async () => {
  const { runId, after } = await left();
  expect(await refusal(after.resume(first({ onFinal: "release" }), runId))).toMatchObject({
    code: "pipeline_changed",
    detail: { changes: ["the pipeline: meta onFinal was added (release)"] },
  });
  const said = first({ dangerLevel: "dangerous", captureOutput: false });
  expect(said.spec.fingerprint).toBe(first().spec.fingerprint);
  expect(await after.resume(said, runId)).toMatchObject({ status: "completed", output: "first" });
});

test("one that is allowed continues with the new pipeline over the recorded past, and the record says who allowed what", async () => {
  const { runId, after, host } = await left();
  const result = await after.resume(second(), runId, { allowChanged: true, by: "ann" });
  expect(result).toMatchObject({ status: "completed", output: "good" });
  const events = await eventsOf(host, runId);
  expect(dataOf(events, "run.resumed")).toMatchObject([
    {
      changed: {
        by: "ann",
        changes: expect.arrayContaining(["state review was added"]),
        fingerprint: second().spec.fingerprint,
      },
    },
  ]);
  expect(dataOf(events, "turn.started").length).toBe(4);
});

test("what was allowed once need not be allowed again, as far as the run went on with it; the old one does", async () => {
  const { clock, first: one, second: other } = twoHosts();
  const tools = [tool("Own")];
  const begun = session({ clock, host: one, model, tools, wait: true });
  const run = begun.start(first(), { task: "x" });
  await eventually(async () => (await one.requests(run.runId).catch(() => [])).length > 0);
  await run.suspend();

  // It asks for the same again, and is stopped before anything is recorded: the run is still the first one's.
  const unused = begun.resume(second(), run.runId, { allowChanged: true });
  await eventually(async () => dataOf(await eventsOf(one, run.runId), "run.resumed").length > 0);
  await unused.suspend();
  expect(await refusal(begun.resume(second(), run.runId))).toMatchObject({ code: "pipeline_changed" });

  await one.signal(run.runId, { name: "request/execute#1/a1/t1.c0", payload: { kind: "deny" }, by: "ann" });
  const waiting = scriptedModel({ stages: { execute: [finish("Own", {}), finish("Own", { again: true })] } });
  const used = session({ clock, host: one, model: waiting, tools, wait: true });
  const going = used.resume(second(), run.runId, { allowChanged: true });
  await eventually(async () => (await one.requests(run.runId)).some(({ requestId }) => requestId.endsWith("t2.c0")));
  await going.suspend();
  await one.close();

  const after = session({ clock, host: other, model, tools });
  expect(await refusal(after.resume(first(), run.runId))).toMatchObject({ code: "pipeline_changed" });
  const rest = scriptedModel({
    stages: {
      execute: [{}, {}, finish("submit_work", { text: "ok", risk: 1 })],
      review: [finish("submit_review", { text: "good" })],
    },
  });
  const last = session({ clock, host: other, model: rest, tools });
  expect(await last.resume(second(), run.runId)).toMatchObject({ status: "completed", output: "good" });
});

test("a fork of a fork is compared with the pipeline that recorded the past it takes, however far back that is", async () => {
  const { runId, after, host } = await left();
  const forkOf = (of: string, from: string, with_: Pipeline<{ task: string }, unknown>, allowChanged = false) =>
    after.fork(with_, of, { from, allowChanged, by: "ann" });
  const changed = await forkOf(runId, "execute#1", second(), true);
  expect(changed).toMatchObject({ status: "completed", output: "good" });

  // Before the first fork the past is of the first pipeline; behind it, of the second.
  expect(await refusal(forkOf(changed.runId, "plan#1", second()))).toMatchObject({ code: "pipeline_changed" });
  expect(await refusal(forkOf(changed.runId, "review#1", first()))).toMatchObject({ code: "pipeline_changed" });
  const back = forkOf(changed.runId, "plan#1", first());
  expect(await back).toMatchObject({ status: "completed", output: "first" });
  const [backStart] = dataOf(await eventsOf(host, back.runId), "run.started");
  expect(backStart).not.toHaveProperty("originalPipeline");

  const on = await forkOf(changed.runId, "review#1", second());
  expect(on).toMatchObject({ status: "completed", output: "good" });
  const [onStart] = dataOf(await eventsOf(host, on.runId), "run.started");
  expect(onStart).toMatchObject({ originalPipeline: { fingerprint: first().spec.fingerprint } });
  expect(await refusal(forkOf(on.runId, "plan#1", second()))).toMatchObject({ code: "pipeline_changed" });
  expect(await forkOf(on.runId, "review#1", second())).toMatchObject({ status: "completed" });
});

describe("a fork that begins inside a child", () => {
  /** A pipeline of one child, whose states ask one after the other; another cap makes it another pipeline. */
  function nested(cap: number): Pipeline<Record<string, never>, unknown> {
    const asks = (question: string) =>
      work({
        limits: { maxToolCalls: cap },
        act: async ({ ask }) =>
          completed(json(await ask({ name: "ask", question: { question, answer: { type: "string" } } }))),
      });
    const inner = pipeline({
      id: "inner",
      input: z.object({}),
      stages: { one: asks("one?"), two: asks("two?"), three: asks("three?"), four: asks("four?") },
      initial: "one",
      next: { one: () => to("two"), two: () => to("three"), three: () => to("four"), four: () => done("ok") },
    });
    return pipeline({
      id: "nested",
      input: z.object({}),
      pipelines: { inner },
      stages: { outer: subPipeline({ pipeline: "inner", input: {} }) },
      initial: "outer",
      next: { outer: () => done("ok") },
    });
  }
  function scene() {
    const { clock, first: host } = twoHosts();
    /** A session whose person answers these questions and leaves the others open. */
    const answering = (...answered: readonly string[]) =>
      session({
        ...{ model: noModel, clock, host, wait: true },
        interactors: [
          callbackInteractor("ann", ({ body }) =>
            answered.includes(String(body.question)) ? { kind: "value", value: "yes" } : undefined,
          ),
        ],
      });
    /** The run, suspended where it asks this. */
    const at = async (question: string, run: RunHandle<unknown>): Promise<string> => {
      const isOpen = async () => (await host.requests(run.runId)).some(({ body }) => body.question === question);
      await eventually(() => isOpen().catch(() => false));
      await run.suspend();
      return run.runId;
    };
    return { host, answering, at };
  }

  test("is compared with the pipeline that recorded the child last, and says who allowed it", async () => {
    const { host, answering, at } = scene();
    const of = await at("one?", answering().start(nested(9), {}));
    await at("two?", answering("one?").resume(nested(5), of, { allowChanged: true, by: "ann" }));
    // Resumed once more, where nothing of the child is recorded.
    await at("two?", answering().resume(nested(7), of, { allowChanged: true, by: "bob" }));

    const all = answering("one?", "two?", "three?", "four?");
    const from = "two#1:inner";
    for (const other of [9, 7])
      expect(await refusal(all.fork(nested(other), of, { from }))).toMatchObject({ code: "pipeline_changed" });
    expect(await all.fork(nested(9), of, { from: "one#1:inner" })).toMatchObject({ status: "completed" });
    const forked = all.fork(nested(5), of, { from });
    expect(await forked).toMatchObject({ status: "completed" });
    const allowed = dataOf(await eventsOf(host, forked.runId), "run.resumed").map(({ changed }) => changed);
    expect(allowed).toMatchObject([{ by: "ann" }, undefined]);
    const journals = await host.journal(forked.runId);
    expect(await replayRun(nested(5), journals, { env: {}, executors: [workExecutor] })).toMatchObject({
      identical: true,
    });
  });

  test("of a fork is compared with the pipeline of the one that recorded the child last", async () => {
    const { answering, at } = scene();
    const of = await at("three?", answering("one?", "two?").start(nested(9), {}));
    const changed = { from: "three#1:inner", allowChanged: true };
    const fork = await at("four?", answering("three?").fork(nested(5), of, changed));
    const all = answering("two?", "three?", "four?");
    const before = { from: "two#1:inner" };
    const behind = { from: "four#1:inner" };
    expect(await refusal(all.fork(nested(5), fork, before))).toMatchObject({ code: "pipeline_changed" });
    expect(await refusal(all.fork(nested(9), fork, behind))).toMatchObject({ code: "pipeline_changed" });
    expect(await all.fork(nested(9), fork, before)).toMatchObject({ status: "completed" });
    expect(await all.fork(nested(5), fork, behind)).toMatchObject({ status: "completed" });
  });
});

test("a run that was in a state which is gone, or whose steps are others now, is refused and continues with the old one", async () => {
  const { runId, after, host } = await left();
  const gone = pipeline({
    id: "changing",
    input: z.object({ task: z.string() }),
    stages: { execute: execute() },
    initial: "execute",
    next: { execute: () => done("without a plan") },
  });
  const records = async () => (await host.records(runId)).length;
  const before = await records();
  expect(await refusal(after.resume(gone, runId, { allowChanged: true }))).toMatchObject({ code: "state_unknown" });
  expect(await records()).toBe(before);

  // The same states, another one first: the journal has other steps.
  const turned = pipeline({
    id: "changing",
    input: z.object({ task: z.string() }),
    stages: { plan: plan(), execute: execute() },
    initial: "execute",
    next: { execute: () => to("plan"), plan: () => done("turned") },
  });
  expect(await refusal(after.resume(turned, runId, { allowChanged: true }))).toMatchObject({
    code: "journal_mismatch",
  });
  expect(await after.resume(first(), runId)).toMatchObject({ status: "completed", output: "first" });
});

test("hooks that appeared or vanished, kinds and the pipeline's own settings are reported", async () => {
  const { runId, after } = await left();
  const other = pipeline({
    id: "changing",
    input: z.object({ task: z.string() }),
    stages: {
      plan: stage({
        prompt: () => "Plan.",
        allowedTools: [],
        turnCap: 3,
        completionTool: "submit_plan",
        completionSchema: planSchema,
        assert: () => "ok",
      }),
      execute: state({ kind: "robot", options: { arm: 1 }, output: { type: "object" } }),
    },
    initial: "plan",
    context: { seen: 0 },
    limits: { maxHops: 7 },
    onCall: () => undefined,
    next: {
      plan: route(["execute"], () => to("execute")),
      execute: { completed: () => done("x"), failed: () => done("y") },
    },
  });
  const thrown = await refusal(after.resume(other, runId));
  expect(thrown).toMatchObject({
    detail: {
      changes: expect.arrayContaining([
        "the pipeline: context was added",
        "the pipeline: limits maxHops was added (7)",
        "the pipeline: hook onCall was added",
        "state plan: prompt changed",
        "state plan: hook assert was added",
        "state execute: kind changed from agent to robot",
        "state execute: completionTool was removed",
        "state execute: options was added",
        "state execute: route when failed was added (anywhere)",
      ]),
    },
  });
});

test("a run whose record has no parts is refused in one line, and what is recorded of a large pipeline is bounded", async () => {
  const states = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`s${at}`, plan()]));
  const large = pipeline({
    id: "large",
    input: z.object({}),
    stages: { s0: plan(), ...states },
    initial: "s0",
    next: { s0: () => done(null) },
  });
  const { parts } = await startedWith(large, {});
  expect(JSON.stringify(parts).length).toBeLessThan(25_000);
  const small = (await startedWith(first(), { task: "x" })).parts;
  expect(JSON.stringify(small).length).toBeLessThan(1_500);
});

async function startedWith<I>(of: Pipeline<I, unknown>, input: NoInfer<I>) {
  const { clock, first: host } = twoHosts();
  const here = session({ clock, host: host, model, tools: [tool("Own")] });
  const handle = here.start(of, input);
  await handle;
  return dataOf(await eventsOf(host, handle.runId), "run.started")[0] ?? {};
}
