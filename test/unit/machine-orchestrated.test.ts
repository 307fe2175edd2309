import { done, final, type Json, type JsonObject, stage } from "@sluice/core";
import { contextOf, type MachineInput, type Transition } from "@sluice/core/machine";
import { describe, expect, test } from "vitest";
import { routeTargets } from "../../packages/core/src/machine/route-targets.ts";
import { completed, type Definition, effectOf, enteredBy, failed, result, started } from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

// An orchestrated run, one transition after the other. It starts in `a`.

const stages = { a: work(), b: work(), ok: final("completed"), lost: final("failed") };
const machine = (orchestrator: object = {}, more: Partial<Definition> = {}) =>
  started({ stages, orchestrator: { instructions: "Direct.", ...orchestrator }, ...more }, { n: 1 });
const chosen = (output: JsonObject): MachineInput => completed(output);
const select = (to: string, input: Json = null): MachineInput => chosen({ to, input });
const endOf = (next: Transition) => effectOf(next, "end").end;
const AT = "orchestrator";

describe("after a state, the orchestrator is entered", () => {
  test("with how it ended; only its output is upstream, and no route is counted", async () => {
    const { step, state } = await machine();
    const next = await step(completed("from a"));
    expect(next.effect).toEqual({
      kind: "enter",
      state: AT,
      input: { state: "a", executionId: "x#1", status: "completed" },
    });
    expect(next.trace.by).toBe("default");
    await step(select("b", { m: 2 }));
    expect(state).toMatchObject({ hops: 1, at: { state: "b", visit: 1, input: { m: 2 } } });
    expect(contextOf(state).upstream).toEqual({ a: "from a" });
    expect(state.counts.get(AT)).toEqual({ visits: 1, turns: 2 });
  });

  test("with code, message and detail of a failure, each within its bound", async () => {
    const { step } = await machine();
    const at = { status: "failed", code: "tool" } as const;
    const longest = { text: "d".repeat(8_000 - '{"text":""}'.length) };
    const short = await step(result({ ...at, message: "m".repeat(4_000), detail: longest }));
    expect(effectOf(short, "enter").input).toEqual({
      state: "a",
      executionId: "x#1",
      ...at,
      message: "m".repeat(4_000),
      detail: longest,
    });
    await step(select("b"));
    const detail = { text: "d".repeat(9_000) };
    const long = await step(result({ ...at, message: "m".repeat(4_001), detail }));
    expect(effectOf(long, "enter").input).toMatchObject({
      message: `${"m".repeat(4_000)}…`,
      detail: `${JSON.stringify(detail).slice(0, 8_000)}…`,
    });
    await step(select("a"));
    expect(effectOf(await step(failed("no")), "enter").input).not.toHaveProperty("detail");
  });

  test("with what a person's interruption left, and without a route", async () => {
    const { step, state } = await machine();
    const cancelled = { status: "cancelled", reason: "interrupted", executionId: "a#1" } as const;
    const facts = { attempts: 1, turns: 3, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
    const input = { kind: "interrupted", result: { ...cancelled, ...facts }, by: "ann", reason: "wrong" } as const;
    const next = await step(input);
    expect(next.effect).toEqual({
      kind: "enter",
      state: AT,
      input: { state: "a", executionId: "a#1", status: "interrupted", feedback: expect.stringContaining("ann") },
    });
    expect(state).toMatchObject({ hops: 0, at: { state: AT, visit: 1 } });
    expect(state.counts.get("a")).toEqual({ visits: 1, turns: 3 });
    // Interrupted itself, it is entered again with the same input.
    const again = await step(input);
    expect(again.effect).toEqual(next.effect);
    expect(state.at).toMatchObject({ state: AT, visit: 2, feedback: expect.stringContaining(`${AT}#1`) });
  });
});

describe("the orchestrator's choice", () => {
  test("is recorded with its reason and with what could be chosen", async () => {
    const { step } = await machine();
    await step(completed(1));
    const { trace } = await step(chosen({ to: "b", reason: "next" }));
    expect(trace).toMatchObject({ by: "model", reason: "next" });
    expect(trace.considered).toEqual([{ to: "a" }, { to: "b" }, { to: "ok" }, { to: "lost" }]);
  });

  test("is recorded without what it does not say", async () => {
    const { step } = await machine();
    await step(completed(1));
    expect((await step(select("b"))).trace).toStrictEqual({
      by: "model",
      considered: [{ to: "a" }, { to: "b" }, { to: "ok" }, { to: "lost" }],
      choice: { kind: "to", state: "b", input: null },
    });
  });

  test("is recorded with 40 targets at most", async () => {
    const { step } = await machine();
    await step(completed(1));
    const refused = Array.from({ length: 50 }, (_, index) => ({ to: `t${index}`, why: "no" }));
    const { trace } = await step({ ...completed({ to: "b" }), refused });
    expect(trace.considered).toEqual(refused.slice(0, 40).map(({ to, why }) => ({ to, refused: why })));
  });

  test("names first what was refused, shortened by whole words", async () => {
    const { step } = await machine();
    await step(completed(1));
    const refused = [{ to: "t".repeat(81), why: `${"w ".repeat(149)}ghp_0123` }];
    const { trace } = await step({ ...completed({ to: "b" }), refused });
    expect(trace.considered?.[0]).toEqual({ to: `${"t".repeat(80)}…`, refused: `${"w ".repeat(149)}…` });
    expect(trace.considered).toHaveLength(5);
  });

  test("of a final state gives the run its output", async () => {
    const { step, state } = await machine();
    await step(completed("from a"));
    const next = await step(select("ok", { made: true }));
    expect(endOf(next)).toEqual({ status: "completed", output: { made: true }, state: "ok" });
    expect(state.counts.has("ok")).toBe(false);
  });

  test.each<[JsonObject, object]>([
    [
      { end: "completed", output: 3 },
      { status: "completed", output: 3 },
    ],
    [{ end: "completed" }, { status: "completed", output: null }],
    [
      { end: "failed", reason: "no way" },
      { status: "failed", message: "no way" },
    ],
    [
      { end: "cancelled", reason: "not wanted" },
      { status: "cancelled", reason: "not wanted" },
    ],
  ])("%j ends the run", async (choice, end) => {
    const { step } = await machine();
    await step(completed(1));
    expect(endOf(await step(chosen(choice)))).toMatchObject(end);
  });

  test.each<[Json, string]>([
    ["b", "its output is not a choice"],
    [{ to: "b", reason: 1 }, "its reason is not a text"],
    [{ to: "b", more: 1 }, 'a choice has no "more"'],
    [{ to: 1 }, "it names no target"],
    [{ to: "B" }, 'it chose "B", which is not one of its targets; did you mean "b"?'],
    [{ to: AT }, 'it chose "orchestrator", which is not one of its targets'],
    [{ to: "b", prompt: "Other." }, "it replaced a prompt, which the pipeline does not allow"],
    [{ end: "completed", to: "b" }, 'the end of a run has no "to"'],
    [{ end: "over" }, "it ended the run, but not as one of completed, failed, cancelled"],
    [{ end: "failed" }, "an end as failed needs a reason"],
    [{ end: "cancelled", reason: "  " }, "an end as cancelled needs a reason"],
  ])("%j fails the run, and says why", async (output, why) => {
    const { step } = await machine();
    await step(completed(1));
    const next = await step(completed(output));
    expect(endOf(next)).toMatchObject({ status: "failed" });
    expect(next.trace.rejected).toContain(`the choice of ${AT} cannot be followed: ${why}`);
  });

  test("cannot return where nothing waits", async () => {
    const { step } = await machine();
    await step(completed(1));
    expect(endOf(await step(chosen({ return: true })))).toMatchObject({ status: "failed" });
  });

  test("may replace a prompt where the pipeline allows it, and only by a text", async () => {
    const said = async (prompt: Json) => {
      const { step, state } = await machine({ allowPromptOverride: true });
      await step(completed(1));
      return { next: await step(chosen({ to: "b", prompt })), state };
    };
    expect((await said("Other.")).state.at).toEqual({ state: "b", visit: 1, input: null, prompt: "Other." });
    for (const prompt of [1, "", " "])
      expect((await said(prompt)).next.trace.rejected).toContain("its prompt is not a text");
  });

  test("of an input that does not fit fails the run, whatever prompt it gives", async () => {
    const b = work({ inputSchema: { type: "object", required: ["n"] } });
    const { step } = await machine({ allowPromptOverride: true }, { stages: { ...stages, b } });
    await step(completed(1));
    const { trace } = await step(chosen({ to: "b", input: {}, prompt: "Other." }));
    expect(trace.choice).toStrictEqual({ kind: "fail", reason: trace.rejected });
  });
});

test("a target has a schema, a prompt and visits only where its state has them", async () => {
  const b = work({ inputSchema: { type: "object" } });
  const c = stage({ prompt: "Work.", completionTool: "submit", completionSchema: { type: "object" }, turnCap: 1 });
  const { spec, state } = await machine({}, { stages: { ...stages, b, c } });
  expect(routeTargets(spec, state, { targets: ["a", "b", "c", "ok"] })).toStrictEqual([
    { state: "a", visitsLeft: 9 },
    { state: "b", visitsLeft: 10, inputSchema: spec.states.get("b")?.inputSchema },
    { state: "c", visitsLeft: 10, takesPrompt: true },
    { state: "ok" },
  ]);
});

describe("a cap", () => {
  test("on visits counts those of states, not those of the orchestrator, and says what cannot be entered", async () => {
    const { step } = await machine({}, { limits: { maxVisits: 2 } });
    const goes = async (to: string): Promise<Transition> => {
      await step(completed(1));
      return await step(select(to));
    };
    for (const to of ["b", "b"]) expect(enteredBy(await goes(to))).toBe(to);
    const last = await goes("a");
    expect(enteredBy(last)).toBe("a");
    const why = "it was entered as often as it may be, or the run has taken all its routes";
    expect(last.trace.considered).toContainEqual({ to: "b", refused: why });
    expect(last.trace.considered).toContainEqual({ to: "a" });
    expect(endOf(await goes("b"))).toMatchObject({ status: "failed", code: "limit_visits", limit: "maxVisits" });
  });

  test("on hops counts each choice once, and offers no state when all are taken", async () => {
    const { step } = await machine({}, { limits: { maxHops: 2 } });
    for (const to of ["b", "a"]) {
      await step(completed(1));
      expect(enteredBy(await step(select(to)))).toBe(to);
    }
    await step(completed(1));
    const next = await step(select("b"));
    expect(endOf(next)).toMatchObject({ status: "failed", code: "limit_hops", limit: "maxHops" });
    const offered = next.trace.considered?.filter(({ refused }) => refused === undefined).map(({ to }) => to);
    expect(offered).toEqual(["ok", "lost"]);
  });
});

describe("an orchestrator that fails", () => {
  test("takes its fallback once, then fails the run", async () => {
    const { step, state } = await machine({ fallback: { to: "b", input: { calm: true } } });
    await step(completed(1));
    expect(state.fellBack).toBe(false);
    const next = await step(failed("no choice"));
    expect(next.effect).toEqual({ kind: "enter", state: "b", input: { calm: true } });
    expect(next.trace).toMatchObject({ by: "fallback", considered: expect.any(Array) });
    expect(state).toMatchObject({ fellBack: true, hops: 1 });
    await step(completed(2));
    expect(endOf(await step(failed("no choice again")))).toMatchObject({ status: "failed", code: "tool" });
  });

  test("takes its fallback although it chose before", async () => {
    const { step } = await machine({ fallback: { to: "a", input: null } });
    await step(completed(1));
    await step(select("b"));
    await step(completed(2));
    expect(enteredBy(await step(failed("no choice")))).toBe("a");
  });

  test("takes a final state as its fallback with the input of that as the output", async () => {
    const { step } = await machine({ fallback: { to: "ok", input: { calm: true } } });
    await step(completed(1));
    expect(endOf(await step(failed("no")))).toEqual({ status: "completed", output: { calm: true }, state: "ok" });
  });

  test("fails the run without a fallback", async () => {
    const { step } = await machine();
    await step(completed(1));
    expect(endOf(await step(failed("no choice")))).toMatchObject({ status: "failed", code: "tool" });
  });
});

describe("a message to a sleeping run", () => {
  const message: MachineInput = { kind: "message", until: 900 };

  test("enters the orchestrator with what sleeps, and a return continues that where it was", async () => {
    const { step, state } = await machine();
    const next = await step(message);
    expect(next.effect).toEqual({
      kind: "enter",
      state: AT,
      input: { asleep: "a", executionId: "a#1", until: 900 },
    });
    expect(next.trace.by).toBe("interrupt");
    expect(state.suspended).toEqual([
      { at: { state: "a", visit: 1, input: { n: 1 } }, joined: undefined, interrupt: "message" },
    ]);
    const back = await step(chosen({ return: true }));
    expect(back.effect).toEqual({ kind: "return" });
    expect(state).toMatchObject({ hops: 0, at: { state: "a", visit: 1 }, suspended: [] });
  });

  test("that arrives before another is answered keeps everything that sleeps", async () => {
    const { step, state } = await machine();
    await step(message);
    await step(message);
    expect(state.suspended.map(({ at }) => at.state)).toEqual(["a", AT]);
  });

  test("that is answered with another state leaves what sleeps", async () => {
    const { step, state } = await machine();
    await step(message);
    expect(enteredBy(await step(select("b")))).toBe("b");
    expect(state).toMatchObject({ hops: 1, suspended: [] });
  });

  test("changes nothing when the orchestrator fails to answer it, and takes no fallback", async () => {
    const { step, state } = await machine({ fallback: { to: "b", input: null } });
    await step(message);
    expect((await step(failed("no answer"))).effect).toEqual({ kind: "return" });
    expect(state).toMatchObject({ hops: 0, at: { state: "a", visit: 1 }, suspended: [], fellBack: false });
  });

  test("is only taken by an orchestrated run", async () => {
    const { step } = await started({
      stages: { a: work() },
      transitions: [{ from: "a", on: "success", to: done(null) }],
    });
    await expect(step(message)).rejects.toThrow("only an orchestrated run takes messages");
  });
});
