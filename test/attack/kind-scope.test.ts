import {
  type ActOutcome,
  type ActScope,
  final,
  type Json,
  pipeline,
  type RunLimits,
  type StateLimits,
} from "@sluice/core";
import { expect, test } from "vitest";
import { caller, completed, noModel, session, tool, work } from "../support/run-kit.ts";

// What a kind of state or a tool gets of its run, it may use, and not put anything of its own in its place.

interface Limits {
  readonly limits?: StateLimits;
  readonly runLimits?: RunLimits;
}

/** The smallest pipeline around one state. */
function around(act: (scope: ActScope) => Promise<ActOutcome>, { limits, runLimits = {} }: Limits = {}) {
  return pipeline({
    id: "one",
    input: { type: "object" },
    initial: "a",
    limits: runLimits,
    stages: {
      a: work<Json>({ allowedTools: ["Keeps"], act, ...(limits === undefined ? {} : { limits }) }),
      ok: final("completed"),
    },
    transitions: [{ from: "a", on: "success", to: "ok" }],
  });
}

test("a kind cannot take back what its calls have used", async () => {
  const live = session({ model: noModel, tools: [tool("Keeps")] });
  const act = async (scope: ActScope): Promise<ActOutcome> => {
    const call = caller(scope);
    const takeBack = (): boolean => Reflect.set(scope.used(), "calls", -9);
    const before = takeBack();
    await call("Keeps");
    const after = takeBack();
    await call("Keeps", { again: true });
    return completed([before, after]);
  };
  const result = await live.start(around(act, { limits: { maxToolCalls: 1 } }), {});
  expect(result).toMatchObject({ denied: [{ callId: "t2.c0", cause: "limit" }], stages: [{ output: [false, false] }] });
});

test("a kind cannot put methods of its own in the place of its budget's", async () => {
  const live = session({ model: noModel });
  const act = async ({ budget, steps }: ActScope): Promise<ActOutcome> => {
    for (const name of ["reserve", "settle", "exceeded", "overspent"]) Reflect.set(budget, name, () => undefined);
    await steps.run("spend", () => null, { cost: () => ({ inputTokens: 1_000, outputTokens: 0 }) });
    return completed(null);
  };
  const result = await live.start(around(act, { runLimits: { maxTokens: 10 } }), {});
  expect(result).toMatchObject({ status: "failed", error: { code: "budget" } });
});

test("a tool adds notes by its result alone", async () => {
  const read: Json[] = [];
  const keeps = tool("Keeps", {
    execute: async (_input, { notes }) => {
      read.push({ ...notes });
      Reflect.set(notes, "forged", true);
      Reflect.set(Object(notes.own), "forged", true);
      return { ok: true, output: null, notes: { own: { real: true } } };
    },
  });
  const live = session({ model: noModel, tools: [keeps] });
  const act = async (scope: ActScope): Promise<ActOutcome> => {
    const call = caller(scope);
    for (const time of [1, 2, 3]) await call("Keeps", { time });
    return completed(null);
  };
  await live.start(around(act), {});
  const own = { own: { real: true } };
  expect(read).toEqual([{}, own, own]);
});

test.each(["request/a#1/a1/t1.c0", "interruption"])(
  "a kind cannot take signals named %s, which are for its run",
  async (name) => {
    const live = session({ model: noModel });
    const act = async ({ steps }: ActScope): Promise<ActOutcome> => {
      await steps.run("take", () => null, { takes: [{ name, count: () => 1 }] });
      return completed(null);
    };
    await expect(live.start(around(act), {})).rejects.toMatchObject({ class: "Host", code: "signals_taken" });
  },
);

test.each([-1, 0.5, Number.NaN])("a kind cannot take %s signals", async (count) => {
  const live = session({ model: noModel });
  const act = async ({ steps }: ActScope): Promise<ActOutcome> => {
    await steps.run("take", () => null, { takes: [{ name: "mine", count: () => count }] });
    return completed(null);
  };
  await expect(live.start(around(act), {})).rejects.toMatchObject({ class: "Host", code: "signals_taken" });
});

test("a kind cannot change the methods of other executions through the prototypes of what it gets", async () => {
  const live = session({ model: noModel });
  const changed: string[] = [];
  const change = (given: object): void => {
    const shared: object = Object.getPrototypeOf(given);
    for (const name of Object.getOwnPropertyNames(shared))
      if (Reflect.defineProperty(shared, name, { value: () => null })) changed.push(name);
  };
  const act = async (scope: ActScope): Promise<ActOutcome> => {
    await scope.steps.run("change", (call) => {
      for (const given of [scope, scope.steps, scope.budget, call]) change(given);
      return null;
    });
    return completed(null);
  };
  expect(await live.start(around(act), {})).toMatchObject({ status: "completed" });
  expect(changed).toEqual([]);
});
