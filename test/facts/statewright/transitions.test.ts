import { initialState, transition } from "@sluice/core/machine";
import { expect } from "vitest";
import { effectOf, enteredBy } from "../../support/machine-kit.ts";
import {
  documentOf,
  fact,
  machineOf,
  oneState,
  pipelineOf,
  play,
  read,
  rowsOf,
  send,
} from "../../support/statewright.ts";
import { loadDocument, ruleLines } from "../../support/workflows.ts";

// How events move the machine. The facts are behaviour of the Statewright engine that its users may rely on.

const needs = (field: string) => ({ field, op: "exists" });
const guards = { one: needs("one"), two: needs("two"), three: needs("three") };
/** A state that may move only if these guards hold. */
const guarded = (names: object, context: object) =>
  documentOf({ a: { allowed_tools: [], on: { GO: { target: "done", ...names }, AGAIN: "a" } } }, { guards, context });

fact(1, "an event moves the machine to its target", async () => {
  const walk = await machineOf(
    documentOf({
      a: { allowed_tools: [], on: { READY: "b" } },
      b: { allowed_tools: [], on: { DONE: "done", FAIL: "failed" } },
    }),
  );
  expect(enteredBy(await walk.send("READY"))).toBe("b");
  expect(walk.at()).toBe("b");
});

fact(2, "a transition with several guards moves if all of them hold", async () => {
  const walk = await machineOf(guarded({ guard: "one", guards: ["two", "three"] }, { one: 1, two: 2, three: 3 }));
  expect((await walk.send("GO")).effect).toMatchObject({ kind: "end", end: { status: "completed", state: "done" } });
});

fact(3, "the first guard that does not hold is named in the refusal", async () => {
  const walk = await machineOf(guarded({ guard: "one", guards: ["two", "three"] }, { one: 1 }));
  const { reason } = effectOf(await walk.send("GO"), "stay");
  expect(reason).toContain("two does not hold");
  expect(reason).not.toContain("three");
});

fact(4, "an unknown event is refused with the state and the event, and the state stays", async () => {
  const walk = await machineOf(oneState({}));
  expect((await walk.send("GO")).effect).toMatchObject({ kind: "stay", reason: 'a has no event "GO"', rejected: [] });
  expect(walk.at()).toBe("a");
});

fact(5, "a state may lead to itself", async () => {
  const { result, walked } = await play(oneState({ on: { AGAIN: "a", DONE: "done" } }), {
    a: [send("AGAIN"), send("AGAIN"), send("DONE")],
  });
  expect([result.status, walked]).toEqual(["completed", ["a#1", "a#2", "a#3"]]);
});

fact(6, "a machine in a state that its workflow does not have goes nowhere, and says which state it is", async () => {
  const { spec } = pipelineOf(await loadDocument(oneState({})));
  const state = initialState(spec, { input: {} });
  state.at = { state: "gone", input: {}, visit: 1 };
  const { effect } = await transition(spec, state, { kind: "event", event: "DONE", data: {} });
  expect(effect).toMatchObject({ kind: "stay", reason: expect.stringContaining("gone") });
});

fact(7, "a lifecycle of several states runs from its first to its last in order", async () => {
  const steps = ["draft", "submitted", "approved", "paid", "shipped"];
  const events = ["SUBMIT", "APPROVE", "PAY", "SHIP", "DELIVER"];
  const states = Object.fromEntries(
    steps.map((name, at) => [name, { allowed_tools: [], on: { [String(events[at])]: steps[at + 1] ?? "delivered" } }]),
  );
  const document = { id: "order", initial: "draft", states: { ...states, delivered: { type: "final" } } };
  const { result, walked } = await play(
    document,
    Object.fromEntries(steps.map((name, at) => [name, [send(String(events[at]))]])),
  );
  expect([result.status, walked]).toEqual(["completed", steps.map((name) => `${name}#1`)]);
});

fact(8, "a transition that needs approval hands on that it does, and its message", async () => {
  const on = { DONE: { target: "done", requires_approval: true, approval_message: "Deploy?" }, FAIL: "failed" };
  const walk = await machineOf(oneState({ on }));
  expect((await walk.send("DONE")).effect).toMatchObject({
    kind: "approve",
    message: "Deploy?",
    from: "a",
    to: "done",
  });
  expect(walk.at()).toBe("a");
});

const caught = (on: object) => machineOf(documentOf({ a: { allowed_tools: [], on, safe_next: "b" }, b }, { guards }));
const b = { allowed_tools: [], on: { DONE: "done", FAIL: "failed" } };

fact(9, "safe_next takes an event that the state does not name", async () => {
  const walk = await caught({ READY: "done", FAIL: "failed" });
  const moved = await walk.send("GO");
  expect([enteredBy(moved), moved.trace.by]).toEqual(["b", "safe_next"]);
});

fact(10, "safe_next never replaces an event that the state names, also if its guard does not hold", async () => {
  const plain = await caught({ READY: "done", FAIL: "failed" });
  expect((await plain.send("READY")).effect).toMatchObject({ kind: "end", end: { state: "done" } });
  const held = await caught({ READY: { target: "done", guard: "one" }, FAIL: "failed" });
  expect((await held.send("READY")).effect).toMatchObject({ kind: "stay" });
});

fact(11, "safe_next does not replace FAIL either", async () => {
  const walk = await caught({ READY: "done", FAIL: "failed" });
  expect((await walk.send("FAIL")).effect).toMatchObject({ kind: "end", end: { status: "failed", state: "failed" } });
});

fact(12, "without safe_next the agent reads that the event is refused and which events there are", async () => {
  const { result, results } = await play(oneState({}), { a: [send("GO"), send("DONE")] });
  expect(results[0]).toMatchObject([{ code: "transition_rejected", legal: [{ event: "DONE" }, { event: "FAIL" }] }]);
  expect(result.status).toBe("completed");
});

const scores = { low: { field: "post_count", op: "lt", value: 5 }, high: { field: "post_count", op: "gte", value: 5 } };
const branched = (rest: readonly object[], context: object) =>
  machineOf(
    documentOf(
      {
        a: { allowed_tools: [], on: { NEXT: [{ target: "evaluating", guard: "low" }, ...rest], FAIL: "failed" } },
        evaluating: b,
        reporting: b,
      },
      { guards: scores, context },
    ),
  );
const reporting = { target: "reporting", guard: "high" };

fact(16, "of a list of branches, the first whose guard holds is taken", async () => {
  expect(enteredBy(await (await branched([reporting], { post_count: 2 })).send("NEXT"))).toBe("evaluating");
  expect(enteredBy(await (await branched([reporting], { post_count: 5 })).send("NEXT"))).toBe("reporting");
});

fact(17, "a list of which no branch matches is refused, with the reason of each", async () => {
  const { effect } = await (await branched([reporting], { post_count: "many" })).send("NEXT");
  expect(effect).toMatchObject({
    kind: "stay",
    rejected: [
      { label: "NEXT[0]", why: expect.stringContaining("low does not hold") },
      { label: "NEXT[1]", why: expect.stringContaining("high does not hold") },
    ],
  });
});

fact(18, "a last branch without a guard is the default", async () => {
  const walk = await branched([{ target: "reporting" }], {});
  expect(enteredBy(await walk.send("NEXT"))).toBe("reporting");
});

const loop = (context: object) => oneState({ on: { AGAIN: "a", DONE: "done" } }, { context });

fact(19, "data merges into the context key by key and overwrites what is there", async () => {
  const walk = await machineOf(loop({ kept: 1, changed: "old" }));
  await walk.send("AGAIN", { changed: "new", added: true });
  expect(walk.context()).toEqual({ kept: 1, changed: "new", added: true });
});

fact(20, "no data, empty data and null as data change nothing", async () => {
  const { events } = await play(loop({ kept: 1 }), {
    a: [send("AGAIN"), send("AGAIN", {}), send("AGAIN", null), send("DONE")],
  });
  const moves = events.filter(({ type }) => type === "route.decided").map(({ data }) => data.why);
  expect(moves).toHaveLength(4);
  expect(JSON.stringify(moves)).not.toContain('"context"');
});

fact(21, "an object inside of data replaces the one in the context as a whole", async () => {
  const walk = await machineOf(loop({ review: { score: 1, by: "x" } }));
  await walk.send("AGAIN", { review: { score: 2 } });
  expect(walk.context()).toEqual({ review: { score: 2 } });
});

const handled = documentOf(
  {
    a: { allowed_tools: [], on: { DONE: "done", FAIL: "failed" } },
    checking: { allowed_tools: [], on: { OK: "$return", LEAVE: "b", FAIL: "failed" } },
    b: { allowed_tools: [], on: { DONE: "done", OK: "$return" } },
  },
  { interrupts: { check: { trigger: { file_pattern: "db/**" }, target: "checking" } }, context: { kept: 1 } },
);
const interrupted = async () => {
  const walk = await machineOf(handled);
  await walk.give({ kind: "interrupt", name: "check", path: "db/a.sql" });
  return walk;
};

fact(22, "$return leads back to the state that was interrupted", async () => {
  const walk = await interrupted();
  expect(walk.at()).toBe("checking");
  expect((await walk.send("OK")).effect).toEqual({ kind: "return" });
  expect(walk.at()).toBe("a");
});

fact(23, "$return where nothing was interrupted is refused with that reason", async () => {
  const walk = await interrupted();
  await walk.send("LEAVE");
  expect((await walk.send("OK")).effect).toMatchObject({
    kind: "stay",
    reason: expect.stringContaining("nothing to return to"),
  });
});

fact(24, "after a return the context is as it was, with the handler's data and without a marker", async () => {
  const walk = await interrupted();
  expect(walk.context()).toEqual({ kept: 1 });
  await walk.send("OK", { checked: true });
  expect(walk.context()).toEqual({ kept: 1, checked: true });
});

fact(25, "a handler that leads to another state goes there, and nothing is left to return to", async () => {
  const walk = await interrupted();
  expect(enteredBy(await walk.send("LEAVE"))).toBe("b");
  expect((await walk.send("OK")).effect).toMatchObject({ kind: "stay" });
});

const forking = (fork: object) =>
  documentOf({
    a: { allowed_tools: [], on: { BUILT: { fork }, FAIL: "failed" } },
    lint: { allowed_tools: [], on: { OK: "lint_done" } },
    types: { allowed_tools: [], on: { OK: "types_done" } },
    lint_done: { type: "final" },
    types_done: { type: "final" },
  });
const branches = {
  lint: { initial: "lint", terminal: "lint_done" },
  types: { initial: "types", terminal: "types_done" },
};

fact(26, "a fork has its branches, each with its first and its last state, and continues in on_complete", async () => {
  const loaded = await loadDocument(forking({ branches, join: "any", on_complete: "done", on_fail: "failed" }));
  expect(ruleLines(loaded)).toEqual([]);
  expect(rowsOf(loaded)[0]?.to).toMatchObject({
    kind: "fork",
    branches,
    join: "any",
    onComplete: "done",
    onFail: "failed",
  });
});

fact(27, "a fork waits for all of its branches unless it says otherwise", async () => {
  const document = forking({ branches, on_complete: "done", on_fail: "failed" });
  const { result } = await play(document, { a: [send("BUILT")], lint: [send("OK")], types: [send("OK")] });
  expect(result.status).toBe("completed");
  // The second branch never ends, so the fork does not complete with the first alone.
  const one = await play(document, { a: [send("BUILT")], lint: [send("OK")], types: [] });
  expect(one.result.status).toBe("failed");
});

fact(28, "a transition without a fork starts no branches", async () => {
  const walk = await machineOf(oneState({}));
  expect((await walk.send("DONE")).effect.kind).toBe("end");
  expect(rowsOf(await loadDocument(oneState({}))).map(({ to }) => to)).toEqual([
    { kind: "to", state: "done" },
    { kind: "to", state: "failed" },
  ]);
});

fact(48, "guards see the context as it was before the data of the event", async () => {
  const walk = await machineOf(guarded({ guard: "one" }, {}));
  expect((await walk.send("GO", { one: 1 })).effect.kind).toBe("stay");
  expect(walk.context()).toEqual({});
  await walk.send("AGAIN", { one: 1 });
  expect((await walk.send("GO")).effect.kind).toBe("end");
});

fact(75, "an agent's data cannot set the markers of a return or a fork, nor a prototype", async () => {
  for (const key of ["_interrupt_return", "_fork", "__proto__", "constructor"]) {
    const walk = await machineOf(loop({ kept: 1 }));
    const data = JSON.parse(`{"${key}":"done"}`);
    expect((await walk.send("AGAIN", data)).effect, key).toMatchObject({
      kind: "stay",
      reason: expect.stringContaining(key),
    });
    expect(walk.context()).toEqual({ kept: 1 });
  }
});

fact(77, "a rationale is recorded with its first 2,000 characters", async () => {
  const { events } = await play(oneState({}), { a: [send("DONE", { rationale: "x".repeat(5_000) })] });
  const [move] = events.filter(({ type }) => type === "route.decided");
  expect(move?.data.why).toMatchObject({ rationale: "x".repeat(2_000) });
});

fact(59, "a move starts the counters of the state over, and counts itself", async () => {
  const document = oneState({ allowed_tools: ["Read"], max_iterations: 1, on: { AGAIN: "a", DONE: "done" } });
  const turns = [read("a.txt"), send("AGAIN"), read("a.txt"), send("DONE")];
  const { result, heard } = await play(document, { a: turns }, { files: { "a.txt": "text" } });
  expect(result.status).toBe("completed");
  expect(heard.map(({ tools }) => tools.includes("Read"))).toEqual([true, false, true, false]);
  const walk = await machineOf(document);
  await walk.send("NOTHING");
  expect(walk.moves()).toBe(0);
  await walk.send("AGAIN");
  expect(walk.moves()).toBe(1);
});
