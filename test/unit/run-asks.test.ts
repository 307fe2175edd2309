import {
  type ActScope,
  type Answer,
  callbackInteractor,
  final,
  type Json,
  type PersonRequest,
  type Pipeline,
  pipeline,
} from "@sluice/core";
import { parseStepId } from "@sluice/core/runtime";
import { describe, expect, onTestFinished, test } from "vitest";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  tool,
  twoHosts,
  type WorkOptions,
  work,
} from "../support/run-kit.ts";

// States that ask a person, and rows that lead on from a pause.

const input = { type: "object" } as const;
const output = { stages: [], execution: "sequential" } as const;
const question = { question: "Which color?", answer: { type: "string", enum: ["red", "blue"] } };
type Act = NonNullable<WorkOptions["act"]>;

/** Asks once, and completes with how it was answered. */
const asking: Act = async (scope) => completed(json(await scope.ask({ name: "color/1", question })));
function asks(
  act: Act = asking,
  options: Omit<WorkOptions, "act" | "inputSchema"> = {},
  inner?: Pipeline<Json, unknown>,
): Pipeline<Json, unknown> {
  return pipeline({
    id: inner === undefined ? "asks" : "outer",
    input,
    pipelines: inner === undefined ? {} : { inner },
    stages: { only: work({ act, ...options }) },
    initial: "only",
    transitions: [{ from: "only", on: "success", to: output }],
  });
}
const nothing = () => asks(() => Promise.resolve(completed(null)));

/** A pipeline that keeps its slot until it may end. */
function occupying() {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const slot = { isTaken: false, end };
  const occupies = asks(async () => {
    slot.isTaken = true;
    await ended;
    slot.isTaken = false;
    return completed(null);
  });
  return { occupies, slot };
}
const answering = (answer: Answer, shown: PersonRequest[] = []) =>
  callbackInteractor("person", (request) => {
    shown.push(request);
    return answer;
  });

describe("a state that asks", () => {
  test("asks who is attached, even if another one was detached twice", async () => {
    const live = session({ model: noModel });
    const detach = live.attach(callbackInteractor("gone", () => undefined));
    live.attach(answering({ kind: "value", value: "red" }));
    detach();
    detach();
    expect(await live.run(asks(), {})).toMatchObject({ output: { answered: true, value: "red" } });
  });

  test("gets the answer of a person, who sees the question", async () => {
    const shown: PersonRequest[] = [];
    const live = session({ model: noModel, interactors: [answering({ kind: "value", value: "red" }, shown)] });
    const run = live.start(asks(), {});
    expect(await run).toMatchObject({ output: { answered: true, value: "red", by: "person" } });
    expect(shown).toMatchObject([
      {
        kind: "humanState",
        requestId: "only#1/a1/ask/color%2F1",
        body: { ...question, executionId: "only#1", attempt: 1 },
      },
    ]);
    expect(dataOf(await eventsOf(live.host, run.runId), "request.answered")).toMatchObject([{ answer: "value" }]);
  });

  test.each([
    ["a denial", { kind: "deny", reason: "ask my boss" }, { cause: "denied", reason: "ask my boss" }],
    ["a deferral", { kind: "defer" }, { cause: "deferred" }],
  ] as const)("gets %s", async (_name, answer, expected) => {
    const live = session({ model: noModel, interactors: [answering(answer)] });
    expect(await live.run(asks(), {})).toMatchObject({ output: { answered: false, ...expected } });
  });

  test("gets a refusal at once where no one can answer", async () => {
    const live = session({ model: noModel });
    expect(await live.run(asks(), {})).toMatchObject({ output: { answered: false, cause: "no_interactor" } });
  });

  test("takes no answer from another process that does not fit the schema or the question", async () => {
    for (const [value, digestOf] of [
      ["green", (digest: string) => digest],
      ["red", () => "0".repeat(64)],
    ] as const) {
      const { clock, first, second } = twoHosts();
      const live = session({ model: noModel, wait: true, clock, host: first });
      const run = live.start(asks(), {});
      await eventually(async () => (await live.host.requests(run.runId)).length === 1);
      const { requestId = "", digest = "" } = (await live.host.requests(run.runId))[0] ?? {};
      const payload = { kind: "value", value, digest: digestOf(digest) };
      await second.signal(run.runId, { name: `request/${requestId}`, payload, digest, by: "elsewhere" });
      expect(await run).toMatchObject({ output: { answered: false, cause: "invalid" } });
    }
  });

  test("with an invalid schema asks no one", async () => {
    const shown: PersonRequest[] = [];
    const live = session({ model: noModel, interactors: [answering({ kind: "value", value: 1 }, shown)] });
    const invalid = asks(async (scope) =>
      completed(json(await scope.ask({ name: "x", question: { question: "?", answer: { type: "nonsense" } } }))),
    );
    expect(await live.run(invalid, {})).toMatchObject({ output: { answered: false, cause: "invalid" } });
    expect(shown).toEqual([]);
  });

  test.each([
    ["a definition", { $ref: "#/definitions/name", definitions: { name: { type: "string" } } }, "a"],
    ["itself", { type: "object", properties: { in: { $ref: "#" } }, additionalProperties: false }, { in: { in: {} } }],
  ])("takes an answer whose schema refers to %s", async (_what, answer, value) => {
    const live = session({ model: noModel, interactors: [answering({ kind: "value", value })] });
    const asked = asks(async (scope) =>
      completed(json(await scope.ask({ name: "x", question: { question: "?", answer } }))),
    );
    expect(await live.run(asked, {})).toMatchObject({ output: { answered: true, value } });
  });

  test("with a tool whose question has an invalid schema asks no one", async () => {
    const shown: PersonRequest[] = [];
    const bad = tool("Bad", { effect: "ask", question: () => ({ question: "?", answer: { type: "nonsense" } }) });
    const interactors = [answering({ kind: "value", value: 1 }, shown)];
    const live = session({ model: noModel, interactors, tools: [bad] });
    const calling = asks(
      async (scope) => completed(json(await scope.calls(1, [{ id: "c1", tool: "Bad", input: {} }]))),
      { allowedTools: ["Bad"] },
    );
    expect(await live.run(calling, {})).toMatchObject({
      output: [{ ok: false, output: { code: "tool_failed", message: expect.stringContaining("schema") } }],
    });
    expect(shown).toEqual([]);
  });

  test("twice under one name stops the run, so that no answer counts for another question", async () => {
    const live = session({ model: noModel, interactors: [answering({ kind: "value", value: "red" })] });
    const twice = asks(async (scope) => {
      await asking(scope, null);
      return await asking(scope, null);
    });
    await expect(live.run(twice, {})).rejects.toMatchObject({ code: "request_repeated" });
  });

  test("does not count the time it waits, and holds no slot", async () => {
    const live = session({ model: noModel, wait: true, maxParallel: 1 });
    const slow = asks(asking, { limits: { timeoutMs: 1_000 } });
    const run = live.start(slow, {});
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(60_000);
    const [request] = await live.host.requests(run.runId);
    await live.answer(request ?? expect.fail(), { kind: "value", value: "blue" }, "person");
    expect(await run).toMatchObject({ status: "completed", output: { value: "blue" } });
  });

  test("keeps its slot and its time limit after a pipeline that does not exist was asked for", async () => {
    const { promise: busy, resolve: finish } = Promise.withResolvers<void>();
    const live = session({ model: noModel, maxParallel: 1 });
    let isBusy = false;
    let hasBegun = false;
    const unknown = asks(async (scope) => {
      const [end] = await Promise.allSettled([
        scope.runChildren("children", [{ key: "a", pipeline: "none", input: {} }]),
      ]);
      isBusy = end.status === "rejected";
      await busy;
      return completed(null);
    });
    const other = asks(async () => {
      hasBegun = true;
      return completed(null);
    });
    const first = live.start(unknown, {});
    await eventually(() => isBusy);
    const second = live.start(other, {});
    await quiet();
    expect(hasBegun).toBe(false);
    finish();
    expect([(await first).status, (await second).status]).toEqual(["completed", "completed"]);
  });

  test("holds no slot meanwhile, though the state asks for a pipeline that does not exist", async () => {
    const live = session({ model: noModel, wait: true, maxParallel: 1 });
    const refused: unknown[] = [];
    const both = asks(async (scope) => {
      const answer = Promise.resolve(asking(scope, null));
      await eventually(async () => (await live.host.requests()).length === 1);
      const children = scope.runChildren("children", [{ key: "a", pipeline: "none", input: {} }]);
      const [end] = await Promise.allSettled([children]);
      if (end.status === "rejected") refused.push(end.reason.code);
      return await answer;
    });
    const run = live.start(both, {});
    await eventually(() => refused.length === 1);
    const meanwhile = asks(() => Promise.resolve(completed("meanwhile")));
    expect(await live.run(meanwhile, {})).toMatchObject({ output: "meanwhile" });
    const [request] = await live.host.requests(run.runId);
    await live.answer(request ?? expect.fail(), { kind: "value", value: "blue" }, "person");
    expect(await run).toMatchObject({ status: "completed", output: { value: "blue" } });
    expect(refused).toEqual(["pipeline_unknown"]);
  });

  test("and a call beside another one, as often as there are slots, leaves the slots to other runs", async () => {
    const live = session({ model: noModel, maxParallel: 2 });
    const children = (scope: ActScope, name: string) =>
      scope.runChildren(name, [{ key: "a", pipeline: "inner", input: {} }]);
    const both: Act = async (scope) => {
      await Promise.allSettled([children(scope, "one"), children(scope, "two")]);
      return completed(null);
    };
    const careless = asks(both, {}, nothing());
    const runs = [live.start(careless, {}), live.start(careless, {})];
    for (const run of runs) await expect(run).rejects.toMatchObject({ code: "step_overlap" });
    expect(await live.run(nothing(), {})).toMatchObject({ status: "completed" });
  });

  test("and one for a pipeline that does not exist, which its attempt does not await, loses no slot", async () => {
    const live = session({ model: noModel, maxParallel: 1 });
    const { occupies, slot } = occupying();
    const careless = asks(async (scope) => {
      const floating = scope.runChildren("children", [{ key: "a", pipeline: "none", input: {} }]);
      floating.catch(() => undefined);
      await eventually(() => slot.isTaken);
      return completed(null);
    });
    const [first, second] = [live.start(careless, {}), live.start(occupies, {})];
    await eventually(() => slot.isTaken);
    await quiet();
    slot.end();
    expect(await first).toMatchObject({ status: "completed" });
    expect(await second).toMatchObject({ status: "completed" });
    expect(await live.run(occupies, {})).toMatchObject({ status: "completed" });
  });

  test("and an attempt that ends while it waits for its slot again is left with its slot", async () => {
    const live = session({ model: noModel, maxParallel: 1 });
    const { occupies, slot } = occupying();
    const others: boolean[] = [];
    const hasty: Act = async (scope) => {
      scope.sleep("nap", live.clock.now()).catch(() => undefined);
      await eventually(() => slot.isTaken);
      return completed(null);
    };
    const assert = () => {
      others.push(slot.isTaken);
      return "ok" as const;
    };
    const [first, second] = [live.start(asks(hasty, { assert }), {}), live.start(occupies, {})];
    await eventually(() => slot.isTaken);
    await quiet();
    slot.end();
    expect([(await first).status, (await second).status, others]).toEqual(["completed", "completed", [false]]);
  });

  test("from an attempt that has ended, without waiting for it, ends nothing but the question", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    let late = (): unknown => undefined;
    const live = session({ model: noModel, wait: true });
    const kept = asks(async (scope) => {
      late = () => scope.ask({ name: "late", question });
      return completed(null);
    });
    expect((await live.run(kept, {})).status).toBe("completed");
    late();
    await quiet();
    expect(unhandled).toEqual([]);
  });

  test.each([
    ["is refused another call meanwhile", false],
    ["is ended by its attempt, and the next attempt works", true],
  ])("and waits for its slot again %s; the slot is not lost", async (_what, isEnded) => {
    const { occupies, slot } = occupying();
    const live = session({ model: noModel, wait: true, maxParallel: 1 });
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    let attempts = 0;
    const outcomes: string[] = [];
    const note = async (what: string, call: Promise<unknown>): Promise<void> => {
      const [end] = await Promise.allSettled([call]);
      outcomes.push(`${what}: ${end.status === "rejected" ? end.reason.code : "ended"}`);
    };
    const act: Act = async (scope) => {
      attempts += 1;
      if (attempts > 1) return completed(null);
      const first = note("first", Promise.resolve(asking(scope, null)));
      await answered;
      if (isEnded) return completed(null);
      await note("second", scope.sleep("nap", 0));
      slot.end();
      await first;
      return completed(null);
    };
    const twice = asks(act, { assert: () => (isEnded && attempts === 1 ? { retry: "again" } : "ok") });
    const run = live.start(twice, {});
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    const other = live.start(occupies, {});
    await eventually(() => slot.isTaken);
    const [request] = await live.host.requests(run.runId);
    await live.answer(request ?? expect.fail(), { kind: "value", value: "blue" }, "person");
    await quiet();
    answer();
    await quiet();
    slot.end();
    expect([(await run).status, (await other).status]).toEqual(["completed", "completed"]);
    expect(outcomes).toEqual(isEnded ? ["first: attempt_over"] : ["second: step_overlap", "first: ended"]);
    expect((await live.run(nothing(), {})).status).toBe("completed");
  });

  test("is cancelled while it waits, in order", async () => {
    const live = session({ model: noModel, wait: true });
    let outcome: Json = null;
    const run = live.start(
      asks(async (scope) => {
        outcome = json(await scope.ask({ name: "color", question }));
        return completed(outcome);
      }),
      {},
    );
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "enough" } });
    expect(outcome).toMatchObject({ answered: false, cause: "cancelled" });
    expect(await live.host.requests(run.runId)).toEqual([]);
    await eventsOf(live.host, run.runId);
    await quiet();
  });

  test("comes to the same end after a kill at any record", async () => {
    const make = (): KilledRun => ({
      pipeline: asks(),
      input: {},
      options: { interactors: [answering({ kind: "value", value: "red" })] },
    });
    const { whole, killed } = await killedEverywhere(make);
    expect(killed.length).toBeGreaterThan(4);
    for (const facts of killed) expect(facts).toEqual(whole);
  });
});

describe("a pause", () => {
  /** Asks where a row leads on, and completes at once with what it has where it was answered before. */
  const pausing: Act = async (scope) => {
    const before = Reflect.get(Object(scope.ctx.input), "answer");
    if (before !== undefined) return completed(json({ visit: scope.ctx.visit, before }));
    const asked = await scope.ask({ name: "color", question });
    const { turns, usage } = completed(null);
    return asked.answered && scope.pauses
      ? { turns, usage, status: "paused", request: { answer: asked.value, done: ["step 1"] } }
      : completed(json(asked));
  };
  const paused = (row?: "ask" | "other"): ReturnType<typeof asks> =>
    pipeline({
      id: "paused",
      input,
      stages: {
        ask: work<Json>({ act: pausing }),
        other: work<Json>({ act: ({ ctx }) => completed(json({ other: ctx.input })) }),
        over: final("completed"),
      },
      initial: "ask",
      transitions: [
        ...(row === undefined ? [] : [{ from: "ask", on: "pause", to: row } as const]),
        { from: "ask", on: "failure", to: "other" },
        { from: "ask", on: "success", to: output },
        { from: "other", on: "success", to: output },
        { from: "other", on: "failure", to: "over" },
      ],
    });
  const options = () => ({ interactors: [answering({ kind: "value", value: "blue" })] });

  test("leads to the state of its row, whose input is the answer", async () => {
    const live = session({ model: noModel, ...options() });
    const result = await live.run(paused("other"), {});
    expect(result).toMatchObject({ output: { other: { answer: "blue", done: ["step 1"] } } });
    expect(result.stages.map(({ executionId, status }) => [executionId, status])).toEqual([
      ["ask#1", "paused"],
      ["other#1", "completed"],
    ]);
  });

  test("that leads to its own state is a new visit with the answer", async () => {
    const live = session({ model: noModel, ...options() });
    expect(await live.run(paused("ask"), {})).toMatchObject({ output: { visit: 2, before: "blue" } });
  });

  test("without a row is none: the state continues in the same execution", async () => {
    const live = session({ model: noModel, ...options() });
    const result = await live.run(paused(), {});
    expect(result).toMatchObject({ output: { answered: true, value: "blue" } });
    expect(result.stages).toHaveLength(1);
  });

  test.each([["other"], ["ask"], [undefined]] as const)(
    "to %s comes to the same end after a kill at any record",
    async (row) => {
      const make = (): KilledRun => ({ pipeline: paused(row), input: {}, options: options() });
      const { whole, killed } = await killedEverywhere(make);
      for (const facts of killed) expect(facts).toEqual(whole);
    },
  );
});

test("a question may be called answer, and its steps are read as those of a question", () => {
  const of = { executionId: "only#1", state: "only", visit: 1, attempt: 1, kind: "ask", name: "answer" };
  expect(parseStepId("only#1/a1/ask/answer")).toEqual({ ...of, part: "open" });
  expect(parseStepId("only#1/a1/ask/answer/answer")).toEqual({ ...of, part: "answer" });
});
