import { type ActScope, final, type Json, type JsonObject, pipeline, type State } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import { byEvents, completed, dataOf, eventsOf, failed, json, noModel, session, work } from "../support/run-kit.ts";

// States that send events, through a real session, resumed after a kill before any record.

const input = { type: "object" } as const;

/** A state that sends its events in order until one is accepted, and then completes. */
function sending(...events: readonly (readonly [event: string, data?: JsonObject])[]): State<Json, unknown> {
  return byEvents(async (scope) => {
    for (const [turn, [event, data = {}]] of events.entries()) {
      const { accepted, output } = await scope.accept({ turn: turn + 1, event, data });
      if (accepted) return completed(output);
    }
    return failed("no event was accepted");
  });
}

describe("a state that sends events", () => {
  const make = (): KilledRun => ({
    input: { task: "t" },
    pipeline: pipeline({
      id: "events",
      input,
      context: { approved: false },
      stages: {
        plan: sending(["DONE"], ["READY", { approved: true, rationale: "it is clear" }]),
        build: sending(["SHIP", { version: 2 }]),
        shipped: final("completed"),
      },
      initial: "plan",
      transitions: [
        { from: "plan", on: { event: "DONE" }, when: () => false, to: "shipped" },
        { from: "plan", on: { event: "READY" }, to: "build" },
        { from: "build", on: { event: "SHIP" }, when: (_result, ctx) => ctx.context.approved === true, to: "shipped" },
      ],
    }),
  });

  test("moves by the first event whose row fires, and its data merges into the context", async () => {
    const live = session({ model: noModel });
    const { pipeline: events, input: given } = make();
    const run = live.start(events, given);
    expect(await run).toMatchObject({
      status: "completed",
      state: "shipped",
      output: { event: "SHIP", data: { version: 2 } },
    });
    const recorded = await eventsOf(live.host, run.runId);
    expect(dataOf(recorded, "transition.rejected")).toMatchObject([
      { turn: 1, event: "DONE", rows: [{ row: 0, why: expect.stringContaining("false") }] },
    ]);
    expect(dataOf(recorded, "transition.accepted")).toEqual([
      { turn: 2, event: "READY", to: "build" },
      { turn: 1, event: "SHIP", to: "shipped" },
    ]);
    expect(dataOf(recorded, "route.decided")).toMatchObject([
      { from: "plan", to: "build", why: { by: "event", event: "READY", rationale: "it is clear" } },
      { from: "build", to: "shipped", why: { by: "event", event: "SHIP" } },
    ]);
    expect(dataOf(recorded, "context.changed")).toEqual([
      { patch: { approved: true, rationale: "it is clear" } },
      { patch: { version: 2 } },
    ]);
  });

  test("goes to the same end, with the same events, when it is killed before any record", async () => {
    const { whole, killed } = await killedEverywhere(make);
    expect(killed.length).toBeGreaterThan(7);
    for (const facts of killed) expect(facts).toEqual(whole);
  });
});

describe("a final state", () => {
  const ending = (outcome: "completed" | "failed" | "cancelled"): KilledRun => ({
    input: {},
    pipeline: pipeline({
      id: "ends",
      input,
      stages: { only: work({ act: () => completed({ n: 1 }) }), over: final(outcome) },
      initial: "only",
      transitions: [
        { from: "only", on: "success", to: "over" },
        { from: "only", on: "failure", to: { kind: "done", output: "unused" } },
      ],
    }),
  });
  test.each([
    ["completed", { status: "completed", state: "over", output: { n: 1 } }],
    [
      "failed",
      { status: "failed", state: "over", error: { code: "failed", message: "ended in state over, after state only" } },
    ],
    [
      "cancelled",
      {
        status: "cancelled",
        state: "over",
        error: { code: "cancelled", message: "ended in state over, after state only" },
      },
    ],
  ] as const)(
    "that is %s ends the run so, and is named in its result and its last event",
    async (outcome, expected) => {
      const live = session({ model: noModel });
      const { pipeline: ends, input: given } = ending(outcome);
      const run = live.start(ends, given);
      expect(await run).toMatchObject(expected);
      expect(dataOf(await eventsOf(live.host, run.runId), "run.finished")).toMatchObject([
        { status: outcome, state: "over" },
      ]);
    },
  );
});

describe("safe_next", () => {
  test("takes an event that no row names, and only that", async () => {
    const live = session({ model: noModel });
    const safe = pipeline({
      id: "safe",
      input,
      stages: { talk: sending(["NAMED"], ["anything at all"]), named: final("failed"), over: final("completed") },
      initial: "talk",
      transitions: [
        { from: "talk", on: { event: "NAMED" }, when: () => false, to: "named" },
        { from: "talk", on: { event: "*" }, to: "over" },
      ],
    });
    const run = live.start(safe, {});
    expect(await run).toMatchObject({ status: "completed", state: "over" });
    expect(dataOf(await eventsOf(live.host, run.runId), "route.decided")).toMatchObject([
      { to: "over", why: { by: "safe_next", event: "anything at all" } },
    ]);
  });
});

describe("an accepted event", () => {
  const twoStates = (act: Parameters<typeof byEvents>[0], common: Partial<State["spec"]> = {}) => {
    const first = byEvents(act);
    return pipeline({
      id: "once",
      input,
      stages: { first: { ...first, spec: { ...first.spec, ...common } }, over: final("completed") },
      initial: "first",
      transitions: [
        { from: "first", on: { event: "GO" }, to: "over" },
        { from: "first", on: "failure", to: { kind: "done", output: "failure row" } },
      ],
    });
  };

  test("is decided about once: a second one is refused, and the output is that of the first", async () => {
    let second: Json = null;
    const live = session({ model: noModel });
    const once = twoStates(async (scope) => {
      await scope.accept({ turn: 1, event: "GO", data: { n: 1 } });
      second = json(await scope.accept({ turn: 1, event: "GO", data: { n: 2 } }));
      return completed("something else");
    });
    expect(await live.run(once, {})).toMatchObject({ output: { event: "GO", data: { n: 1 } } });
    expect(second).toMatchObject({ accepted: false, output: { code: "transition_rejected" } });
  });

  test("is dropped by a failure, whose own row decides", async () => {
    const live = session({ model: noModel });
    const failing = twoStates(async (scope) => {
      await scope.accept({ turn: 1, event: "GO", data: { kept: true } });
      return failed("no");
    });
    expect(await live.run(failing, {})).toMatchObject({ status: "completed", output: "failure row" });
  });

  test("is dropped by an assert that asks for another attempt", async () => {
    const seen: Json[] = [];
    const live = session({ model: noModel });
    const again = twoStates(
      async (scope) => {
        const { output } = await scope.accept({ turn: 1, event: "GO", data: { attempt: scope.ctx.attempt } });
        seen.push(output);
        return completed(output);
      },
      { assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: "again" } : "ok") },
    );
    expect(await live.run(again, {})).toMatchObject({ output: { event: "GO", data: { attempt: 2 } } });
    expect(seen).toHaveLength(2);
  });

  test("is needed: a state that completes without one fails the run", async () => {
    const live = session({ model: noModel });
    expect(
      await live.run(
        twoStates(async () => completed("done")),
        {},
      ),
    ).toMatchObject({ status: "failed" });
  });

  test("comes from the attempt only: a scope that is still held afterwards rejects", async () => {
    let held: ActScope | undefined;
    const live = session({ model: noModel });
    const holding = twoStates(async (scope) => {
      held = scope;
      const { output } = await scope.accept({ turn: 1, event: "GO", data: {} });
      return completed(output);
    });
    expect(await live.run(holding, {})).toMatchObject({ status: "completed" });
    const over = { class: "Host", code: "attempt_over" };
    await expect(held?.accept({ turn: 1, event: "GO", data: {} })).rejects.toMatchObject(over);
    await expect(held?.ask({ name: "late", question: {} })).rejects.toMatchObject(over);
    await expect(held?.runChildren("late", [])).rejects.toMatchObject(over);
  });

  test("may hold data that cannot merge, which is refused with the reason", async () => {
    const outputs: Json[] = [];
    const live = session({ model: noModel });
    const hostile = twoStates(async (scope) => {
      for (const data of [{ _fork: 1 }, { constructor: 1 }, JSON.parse('{"__proto__": {"x": 1}}')])
        outputs.push((await scope.accept({ turn: 1, event: "GO", data })).output);
      const { output } = await scope.accept({ turn: 2, event: "GO", data: {} });
      return completed(output);
    });
    expect(await live.run(hostile, {})).toMatchObject({ status: "completed" });
    expect(outputs).toMatchObject(
      Array.from({ length: 3 }, () => ({ code: "transition_rejected", reason: expect.stringMatching(/data/) })),
    );
  });
});
