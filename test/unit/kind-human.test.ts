import { type Answer, callbackInteractor, done, type PersonRequest, pipeline, type State, to } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { human } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { asWritten } from "../support/as-written.ts";
import { handClock } from "../support/hand-clock.ts";
import { dataOf, eventsOf, eventually, noModel, quiet, session, twoHosts } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const plan = z.object({ approved: z.boolean(), note: z.string().default("none") });
const question = "Is {{ctx.task}} ready?";

/** Asks, and ends with the answer, or with how the question failed. */
function asks<O>(ask: State<O, undefined>) {
  return pipeline({
    id: "asks",
    input,
    stages: { ask },
    initial: "ask",
    next: {
      ask: {
        completed: ({ output }) => done({ answer: output }),
        failed: ({ code, message, detail = null }) => done({ code, message, detail }),
      },
    },
  });
}
const task = { task: "the release" };
const person = (answer: Answer, shown: PersonRequest[] = []) =>
  callbackInteractor("Ada", (request) => {
    shown.push(request);
    return answer;
  });

describe("a state that asks a person", () => {
  test("completes with the answer, whose type is that of its schema", async () => {
    const shown: PersonRequest[] = [];
    const live = session({
      model: noModel,
      interactors: [person({ kind: "value", value: { approved: true } }, shown)],
    });
    const made = pipeline({
      id: "typed",
      input,
      stages: { ask: human({ question, answer: plan }) },
      initial: "ask",
      next: { ask: ({ output }) => done(output.approved ? output.note : "no") },
    });
    const run = live.start(made, task);
    // What the schema makes of the answer is the output.
    expect(await run).toMatchObject({ status: "completed", output: "none" });
    expect(shown).toMatchObject([{ kind: "humanState", body: { question: "Is the release ready?" } }]);
    expect(shown[0]?.body).toHaveProperty("answer.properties.approved");
    expect(dataOf(await eventsOf(live.host, run.runId), "request.answered")).toMatchObject([{ by: "Ada" }]);
  });

  test("takes a text where it has no schema", async () => {
    const live = session({ model: noModel, interactors: [person({ kind: "value", value: "tomorrow" })] });
    expect(await live.run(asks(human({ question: "When?" })), task)).toMatchObject({ output: { answer: "tomorrow" } });
  });

  test("takes JSON Schema of any value", async () => {
    const live = session({ model: noModel, interactors: [person({ kind: "value", value: 3 })] });
    const count = human({ question: "How many?", answer: { type: "integer", minimum: 1 } });
    expect(await live.run(asks(count), task)).toMatchObject({ output: { answer: 3 } });
  });

  test.each([
    ["a denial", { kind: "deny", reason: "ask my boss" }, { cause: "denied", reason: "ask my boss" }],
    ["a deferral", { kind: "defer" }, { cause: "deferred" }],
  ] as const)("fails after %s, and a route can lead on", async (_name, answer, detail) => {
    const live = session({ model: noModel, interactors: [person(answer)] });
    expect(await live.run(asks(human({ question })), task)).toMatchObject({
      status: "completed",
      output: { code: "unanswered", detail },
    });
  });

  test("fails at once where no one can answer, and a route can lead on", async () => {
    const live = session({ model: noModel });
    expect(await live.run(asks(human({ question, deadline: "3d" })), task)).toMatchObject({
      status: "completed",
      output: { code: "unanswered", detail: { cause: "no_interactor" } },
    });
  });

  test("is its own state: what runs before and after it is asked for nothing", async () => {
    const live = session({ model: noModel, interactors: [person({ kind: "value", value: "yes" })] });
    const made = pipeline({
      id: "two",
      input,
      stages: { first: human({ question: "First?" }), second: human({ question: "After {{ctx.upstream.first}}?" }) },
      initial: "first",
      next: { first: () => to("second"), second: ({ output }) => done(output) },
    });
    const run = live.start(made, task);
    expect(await run).toMatchObject({ status: "completed", output: "yes" });
    const asked = dataOf(await eventsOf(live.host, run.runId), "request.opened");
    expect(asked).toMatchObject([{ body: { question: "First?" } }, { body: { question: "After yes?" } }]);
  });

  test.each([
    ["no question", { question: " " }],
    ["a question with a template that leads nowhere", { question: "{{ctx.nothing}}" }],
    ["no choice to answer with", { question: "?", answer: { type: "string", enum: [] } }],
    ["an invalid schema", { question: "?", answer: { type: "nonsense" } }],
    ["a deadline that is no time", { question: "?", deadline: "soon" }],
    ["an answer at the deadline, and no deadline", { question: "?", onDeadline: { answer: "yes" } }],
    ["an unknown outcome at the deadline", { question: "?", deadline: "1d", onDeadline: "skip" }],
    ["an answer that does not fit", { question: "?", deadline: "1d", onDeadline: { answer: 5 } }],
  ])("with %s is refused before a run", (_name, options) => {
    expect(() => asks(asWritten<State<unknown, undefined>>(human, options))).toThrow(
      expect.objectContaining({ code: "definition_invalid" }),
    );
  });
});

describe("a question with a deadline", () => {
  const DAY = 24 * 3_600_000;
  const withDeadline = asks(human({ question, deadline: "3d" }));
  const withDefault = asks(
    human({ question, answer: plan, deadline: "3d", onDeadline: { answer: { approved: false, note: "nobody" } } }),
  );

  test("fails when no one has answered by then", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(withDeadline, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(3 * DAY - 1);
    expect((await live.host.get(run.runId))?.end).toBeUndefined();
    live.clock.turn(1);
    expect(await run).toMatchObject({ output: { code: "unanswered", detail: { cause: "timeout" } } });
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "request.opened")).toMatchObject([
      { until: 3 * DAY + 1_000, body: { until: 3 * DAY + 1_000 } },
    ]);
    expect(dataOf(events, "request.expired")).toMatchObject([{ cause: "timeout" }]);
    expect(await live.host.requests(run.runId)).toEqual([]);
  });

  test("completes with the answer that its definition has for then", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(withDefault, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(3 * DAY);
    expect(await run).toMatchObject({ output: { answer: { approved: false, note: "nobody" } } });
  });

  test("stays open until then, also where the session denies other requests earlier", async () => {
    const live = session({ model: noModel, wait: true, requestTimeoutMs: 1_000 });
    const run = live.start(withDefault, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    await quiet();
    live.clock.turn(DAY);
    await quiet();
    expect(await live.host.requests(run.runId)).toHaveLength(1);
    live.clock.turn(2 * DAY);
    expect(await run).toMatchObject({ output: { answer: { note: "nobody" } } });
  });

  test("takes an answer until then", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(withDefault, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(3 * DAY - 1);
    const [request] = await live.host.requests(run.runId);
    const answer = { kind: "value", value: { approved: true } } as const;
    expect(await live.answer(request ?? expect.fail(), answer, "Ada")).toBe("accepted");
    expect(await run).toMatchObject({ output: { answer: { approved: true } } });
  });

  test("counts from when it was asked, also in another process, and refuses a late answer", async () => {
    const { clock, first, second } = twoHosts();
    const before = session({ model: noModel, wait: true, clock, host: first });
    const run = before.start(withDeadline, task, { answers: "any" });
    await eventually(async () => (await first.requests(run.runId)).length === 1);
    clock.turn(DAY);
    await first.close();
    expect(await second.due(10)).toEqual({ runs: [], next: 3 * DAY + 1_000 });
    clock.turn(2 * DAY + 1);
    expect((await second.due(10)).runs).toEqual([run.runId]);
    const { requestId = "", digest = "" } = (await second.requests(run.runId))[0] ?? {};
    const payload = { kind: "value", value: "yes", digest };
    const late = { name: `request/${requestId}`, payload, digest, by: "Ada" };
    expect(await second.signal(run.runId, late)).toBe("expired");
    const after = session({ model: noModel, wait: true, clock, host: second });
    expect(await after.resume(withDeadline, run.runId)).toMatchObject({
      output: { code: "unanswered", detail: { cause: "timeout" } },
    });
    await eventsOf(second, run.runId);
  });

  test("that no process asked at its end ends when the run is resumed, even if no one can answer then", async () => {
    const { clock, first, second } = twoHosts();
    const before = session({ model: noModel, wait: true, clock, host: first });
    const run = before.start(withDefault, task);
    await eventually(async () => (await first.requests(run.runId)).length === 1);
    await first.close();
    clock.turn(3 * DAY);
    const after = session({ model: noModel, clock, host: second });
    expect(await after.resume(withDefault, run.runId)).toMatchObject({ output: { answer: { approved: false } } });
  });

  test("is due at its deadline, also if the process was killed", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const store = memory.connect();
    const before = session({ model: noModel, wait: true, clock, host: createHost(store, { clock }) });
    const run = before.start(withDeadline, task);
    await eventually(async () => clock.waiting() === 1);
    await store.close();
    const second = createHost(memory.connect(), { clock });
    expect(await second.due(10)).toEqual({ runs: [], next: 3 * DAY + 1_000 });
    clock.turn(3 * DAY);
    expect((await second.due(10)).runs).toEqual([run.runId]);
    await expect(run).rejects.toMatchObject({ code: "store_closed" });
  });

  test("takes no late answer from a store that accepts one", async () => {
    const clock = handClock();
    const store = createMemoryJournals().connect();
    const lax: JournalStore = {
      ...store,
      signals: async (...args) => (await store.signals(...args)).map((signal) => ({ ...signal, at: clock.now() })),
    };
    const first = createHost(lax, { clock });
    const live = session({ model: noModel, wait: true, clock, host: first });
    const run = live.start(withDeadline, task, { answers: "any" });
    await eventually(async () => (await first.requests(run.runId)).length === 1);
    const { requestId = "", digest = "" } = (await first.requests(run.runId))[0] ?? {};
    const late = { name: `request/${requestId}`, payload: { kind: "value", value: "yes", digest }, digest, by: "Ada" };
    const sent = store.putSignal(run.runId, late, clock.now());
    clock.turn(3 * DAY + 1);
    expect(await sent).toBe("accepted");
    expect(await run).toMatchObject({ output: { detail: { cause: "timeout" } } });
  });

  test("is over when the run is cancelled", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(withDefault, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    await run.cancel("not needed");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "not needed" } });
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "request.expired")).toMatchObject([{ cause: "cancelled" }]);
    expect(live.clock.waiting()).toBe(0);
  });

  test("that a person interrupts has not expired, and is asked again with a deadline of its own", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(withDefault, task);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(DAY);
    await run.interrupt("the wrong question");
    expect(await run).toMatchObject({ status: "suspended", reason: "interrupted" });
    const resumed = live.resume(withDefault, run.runId);
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(3 * DAY);
    expect(await resumed).toMatchObject({ output: { answer: { approved: false } } });
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "request.expired").map(({ cause }) => cause)).toEqual(["cancelled", "timeout"]);
    expect(dataOf(events, "request.opened").map(({ until }) => until)).toEqual([3 * DAY + 1_000, 4 * DAY + 1_000]);
  });
});
