import { join } from "node:path";
import {
  type ActScope,
  type Answer,
  backToInterrupted,
  callbackInteractor,
  done,
  fail,
  final,
  forEach,
  fork,
  invoke,
  type Json,
  pipeline,
  type State,
  type Subject,
  type Tool,
  to,
} from "@sluice/core";
import { subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  session,
  tool,
  type WorkOptions,
  work,
} from "../support/run-kit.ts";

// Events, approvals, interrupts, questions, branches and other pipelines inside each other.

const input = { type: "object" } as const;
const output = { stages: [], execution: "sequential" } as const;
const cwd = import.meta.dirname;
type Act = NonNullable<WorkOptions["act"]>;
const state = (act: Act): State<Json, unknown> => work<Json, unknown>({ act });
function byEvents(act: (scope: ActScope) => Promise<Awaited<ReturnType<Act>>>): State<Json, unknown> {
  const { kind, spec } = state(act);
  return { kind, spec: { ...spec, completesByEvents: true } };
}
const sends = (event: string, data = {}): State<Json, unknown> =>
  byEvents(async (scope) => {
    const { accepted, output: answer } = await scope.accept({ turn: 1, event, data });
    return accepted ? completed(answer) : failed(JSON.stringify(answer));
  });

function changeTool(): Tool {
  return tool("Change", {
    subjects: (): Subject[] => [{ kind: "path", real: join(cwd, "src/a.ts"), access: "write" }],
    prepare: () => null,
    recover: () => "not_started",
  });
}
const changes = async (scope: ActScope) => await scope.calls(1, [{ id: "t1.c0", tool: "Change", input: {} }]);

/** An inner pipeline that forks, whose branches change files, ask and wait for approvals. */
function inner() {
  return pipeline({
    id: "inner",
    input,
    interrupts: { REVIEW: { files: "src/**", target: "review" } },
    stages: {
      start: sends("SPLIT", { from: "inner" }),
      edit: state(async (scope) => {
        const outcomes = await changes(scope);
        return completed(json(outcomes));
      }),
      ask: state(async (scope) => completed(json(await scope.ask({ name: "q", question: { question: "?" } })))),
      review: sends("RETURN"),
      ended: final("completed"),
      merge: state(({ ctx }) =>
        completed(json({ edit: ctx.upstream.edit, ask: ctx.upstream.ask, context: ctx.context })),
      ),
    },
    initial: "start",
    transitions: [
      {
        from: "start",
        on: { event: "SPLIT" },
        to: fork(
          { edit: { initial: "edit", terminal: "ended" }, ask: { initial: "ask", terminal: "ended" } },
          { onComplete: "merge" },
        ),
        approval: { message: "split?" },
      },
      { from: "edit", on: "success", to: "ended", approval: {} },
      { from: "ask", on: "success", to: "ended" },
      { from: "review", on: { event: "RETURN" }, to: backToInterrupted(), approval: { message: "return?" } },
      { from: "merge", on: "success", to: output },
    ],
  });
}
function outer() {
  return pipeline({
    id: "outer",
    input,
    pipelines: { inner: inner() },
    stages: {
      begin: state(() => completed("begun")),
      joined: state(({ ctx }) => completed(json(ctx.upstream))),
    },
    initial: "begin",
    transitions: [
      { from: "begin", on: "success", to: invoke("inner", { onComplete: "joined" }), approval: {} },
      { from: "joined", on: "success", to: output },
    ],
  });
}
const answering = (
  answerOf: (kind: string) => Answer = (kind) =>
    kind === "humanState" ? { kind: "value", value: 42 } : { kind: "approve" },
) => callbackInteractor("person", ({ kind }) => answerOf(kind));
const options = () => ({
  model: noModel,
  cwd,
  mode: "yolo" as const,
  tools: [changeTool()],
  interactors: [answering()],
});

test("all of it works together, in three levels of runs", async () => {
  const live = session(options());
  const run = live.start(outer(), { task: "t" });
  expect(await run).toMatchObject({
    status: "completed",
    output: {
      begin: "begun",
      inner: {
        edit: [{ ok: true, interrupts: [{ interrupt: "REVIEW", by: "review#1", output: { event: "RETURN" } }] }],
        ask: { answered: true, value: 42 },
        context: { from: "inner" },
      },
    },
  });
  const runs = (await live.host.journal(run.runId)).map(({ runId }) => runId.replace(run.runId, ""));
  expect(runs).toEqual(["", "/fan-1/inner", "/fan-1/inner/fan-1/edit", "/fan-1/inner/fan-1/ask"]);
  expect(dataOf(await eventsOf(live.host, run.runId), "request.opened").map(({ requestId }) => requestId)).toEqual([
    "begin#1/a1/approval",
    "start#1/a1/turn/1/accept/0",
    "review#1/a1/turn/1/accept/0",
    "edit#1/a1/approval",
    "ask#1/a1/ask/q",
  ]);
});

test("all of it comes to the same end after a kill at any record", async () => {
  const make = (): KilledRun => ({
    pipeline: outer(),
    input: { task: "t" },
    options: { ...options(), maxParallel: 1 },
  });
  const { whole, killed } = await killedEverywhere(make);
  expect(killed.length).toBeGreaterThan(20);
  for (const { events: _events, ...facts } of killed) {
    const { events: _whole, ...expected } = whole;
    expect(facts).toEqual(expected);
  }
});

test("it is cancelled in order at every request that it waits for", async () => {
  for (let answered = 0; answered < 5; answered += 1) {
    let left = answered;
    const live = session({
      ...options(),
      wait: true,
      maxParallel: 1,
      interactors: [
        callbackInteractor("person", async ({ kind }) => {
          if (left === 0) return undefined;
          left -= 1;
          return kind === "humanState" ? { kind: "value", value: 1 } : { kind: "approve" };
        }),
      ],
    });
    const run = live.start(outer(), {});
    await eventually(async () => left === 0 && (await live.host.requests(run.runId)).length > 0);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "enough" } });
    expect(await live.host.requests(run.runId)).toEqual([]);
    for (const { end, runId } of await live.host.journal(run.runId))
      expect([runId, end?.status]).toEqual([runId, runId === run.runId ? "cancelled" : expect.any(String)]);
    await eventsOf(live.host, run.runId);
  }
});

test("a denied return keeps the handler, which fails here, and the whole branch with it", async () => {
  const live = session({
    ...options(),
    interactors: [
      callbackInteractor("person", ({ body }) => (body.message === "return?" ? { kind: "deny" } : { kind: "approve" })),
    ],
  });
  expect(await live.run(outer(), {})).toMatchObject({ status: "failed", error: { code: "fan_out" } });
});

test("a secret in an event reaches neither the journal nor the next state", async () => {
  const secret = "sk-a-very-secret-value-1234567890";
  const live = session({ ...options(), env: { API_KEY: secret }, secrets: ["API_KEY"] });
  const answers: Json[] = [];
  const telling = pipeline({
    id: "telling",
    input,
    stages: {
      first: byEvents(async (scope) => {
        const { output: accepted } = await scope.accept({
          turn: 1,
          event: "GO",
          data: { key: secret, rationale: `use ${secret}` },
        });
        answers.push(accepted);
        return completed(accepted);
      }),
      next: state(({ ctx }) => completed(json(ctx.context))),
    },
    initial: "first",
    transitions: [
      { from: "first", on: { event: "GO" }, to: "next", approval: { message: "go?" } },
      { from: "next", on: "success", to: output },
    ],
  });
  const run = live.start(telling, {});
  expect(JSON.stringify([await run, answers])).not.toContain(secret);
  expect(JSON.stringify(await live.host.journal(run.runId))).not.toContain(secret);
});

describe("a run that forks from another", () => {
  test("before a handler, or after it, comes to the same end", async () => {
    const simple = pipeline({
      id: "simple",
      input,
      interrupts: { REVIEW: { files: "src/**", target: "review" } },
      stages: {
        edit: state(async (scope) => completed(json(await changes(scope)))),
        review: sends("RETURN"),
        after: state(({ ctx }) => completed(json(ctx.upstream.edit))),
      },
      initial: "edit",
      transitions: [
        { from: "review", on: { event: "RETURN" }, to: backToInterrupted() },
        { from: "edit", on: "success", to: "after" },
        { from: "after", on: "success", to: output },
        { from: "after", on: "failure", to: done(null) },
      ],
    });
    const live = session(options());
    const run = live.start(simple, {});
    const result = await run;
    expect(result.status).toBe("completed");
    for (const from of ["edit#1", "review#1", "after#1"])
      expect(await live.fork(simple, run.runId, { from })).toMatchObject({
        status: "completed",
        output: Reflect.get(result, "output"),
      });
  });

  test("from the first state of a branch, runs the branch and its join again", async () => {
    const branches = pipeline({
      id: "branches",
      input,
      stages: {
        start: state(() => completed(null)),
        a: state(() => completed("a")),
        b: state(() => completed("b")),
        ended: final("completed"),
        merge: state(({ ctx }) => completed(json(ctx.upstream))),
      },
      initial: "start",
      transitions: [
        {
          from: "start",
          on: "success",
          to: fork(
            { x: { initial: "a", terminal: "ended" }, y: { initial: "b", terminal: "ended" } },
            { onComplete: "merge" },
          ),
        },
        { from: "a", on: "success", to: "ended" },
        { from: "b", on: "success", to: "ended" },
        { from: "merge", on: "success", to: output },
      ],
    });
    const live = session(options());
    const run = live.start(branches, {});
    expect(await run).toMatchObject({ output: { x: "a", y: "b" } });
    expect(await live.fork(branches, run.runId, { from: "a#1" })).toMatchObject({ output: { x: "a", y: "b" } });
    expect(await live.fork(branches, run.runId, { from: "merge#1" })).toMatchObject({ output: { x: "a", y: "b" } });
  });
});

/** Spends 40 tokens and completes, or fails with the cap that they do not fit under. */
function spend(next: Json): State<Json, unknown> {
  return work<Json, unknown>({
    act: async (scope) => {
      const refused = await scope.steps.run(
        "spend",
        () => scope.budget.reserve({ inputTokens: 40, outputTokens: 0 })?.limit ?? null,
        { cost: (limit) => ({ inputTokens: limit === null ? 40 : 0, outputTokens: 0 }) },
      );
      return refused === null ? completed(next) : failed(refused);
    },
  });
}

test("the cap of an invoked pipeline counts what it used before a kill", async () => {
  const make = (): KilledRun => {
    const capped = pipeline({
      id: "capped",
      input,
      limits: { maxTokens: 100 },
      stages: { one: spend("1"), two: spend("2"), three: spend("3") },
      initial: "one",
      transitions: [
        { from: "one", on: "success", to: "two" },
        { from: "two", on: "success", to: "three" },
        { from: "three", on: "success", to: output },
      ],
    });
    const calls = pipeline({
      id: "calls",
      input,
      pipelines: { capped },
      stages: { start: spend("0"), over: state(({ ctx }) => completed(json(ctx.fork))) },
      initial: "start",
      transitions: [
        { from: "start", on: "success", to: invoke("capped", { onComplete: "over", onFail: "over" }) },
        { from: "over", on: "success", to: output },
      ],
    });
    return { pipeline: calls, input: {} };
  };
  const { whole, killed } = await killedEverywhere(make);
  expect(whole.output).toMatchObject({
    capped: { status: "failed", message: expect.stringContaining("run.maxTokens") },
  });
  for (const facts of killed) expect(facts.output).toEqual(whole.output);
});

describe("the caps of a state that runs a pipeline", () => {
  const spending = () =>
    pipeline({ id: "spending", input, stages: { one: spend("1") }, initial: "one", next: { one: () => done("ok") } });
  const limits = { maxTokens: 100 };

  test("cover all its attempts, and each visit by itself, after a kill at any record, too", async () => {
    const make = (): KilledRun => ({
      pipeline: pipeline({
        id: "outer",
        input,
        pipelines: { spending: spending() },
        stages: {
          often: subPipeline({
            pipeline: "spending",
            input: {},
            limits,
            retryPolicy: { maxAttempts: 4 },
            assert: ({ status }, { attempt, visit }) =>
              status === "completed" && visit === 1 && attempt < 4 ? { retry: "again" } : "ok",
          }),
        },
        initial: "often",
        next: {
          often: {
            completed: ({ output: said }) => done(said),
            failed: ({ attempts }) => (attempts === 3 ? to("often") : fail("the cap did not hold")),
          },
        },
      }),
      input: {},
    });
    const { whole, killed } = await killedEverywhere(make);
    expect(whole).toMatchObject({ stages: ["often#1 failed", "often#2 completed"], output: "ok" });
    expect(whole.events.join()).toContain("one failed (tool): caller.maxTokens");
    for (const facts of killed) expect(facts).toMatchObject({ stages: whole.stages, output: whole.output });
  });

  test("fail a state of the pipeline whose work ends beyond one, after a kill at any record and in a replay, too", async () => {
    const beyond = work<Json, unknown>({
      act: async ({ steps }) => {
        await steps.run("spend", () => null, { cost: () => ({ inputTokens: 101, outputTokens: 0 }) });
        return completed("spent");
      },
    });
    const spends = pipeline({
      id: "spends",
      input,
      stages: { beyond },
      initial: "beyond",
      next: { beyond: () => done("ok") },
    });
    const make = (): KilledRun => ({
      pipeline: pipeline({
        id: "outer",
        input,
        pipelines: { spends },
        stages: { call: subPipeline({ pipeline: "spends", input: {}, limits }) },
        initial: "call",
        next: { call: { completed: () => fail("the cap did not hold"), failed: ({ message }) => done(message) } },
      }),
      input: {},
    });
    const { whole, killed } = await killedEverywhere(make);
    expect(whole.output).toMatch(
      /beyond failed \(budget\): the state that runs this pipeline may use 100 tokens: 101 used/,
    );
    for (const facts of killed) expect(facts.output).toEqual(whole.output);
  });

  test("cover each item of a list by itself, with the pipelines in its pipeline, after a kill at any record, too", async () => {
    const make = (): KilledRun => {
      const inner = subPipeline({ pipeline: "spending", input: {} });
      const thrice = pipeline({
        id: "thrice",
        input,
        pipelines: { spending: spending() },
        stages: { first: spend("1"), second: inner, third: inner },
        initial: "first",
        next: { first: () => to("second"), second: () => to("third"), third: () => done("3") },
      });
      return {
        pipeline: pipeline({
          id: "outer",
          input,
          pipelines: { thrice },
          stages: {
            start: work(),
            item: subPipeline({ pipeline: "thrice", input: {}, limits, inputSchema: z.number() }),
            join: work({ act: ({ ctx }) => completed(json(ctx.items)) }),
          },
          initial: "start",
          next: {
            start: () => forEach("item", [1, 2], { join: "join", onFailure: "settle" }),
            join: ({ output: items }) => done(items),
          },
        }),
        input: {},
      };
    };
    const { whole, killed } = await killedEverywhere(make);
    const message = expect.stringMatching(/third failed .*caller\.maxTokens/);
    expect(whole.output).toMatchObject({
      item: [
        { status: "failed", message },
        { status: "failed", message },
      ],
    });
    for (const facts of killed) expect(facts.output).toEqual(whole.output);
  });
});
