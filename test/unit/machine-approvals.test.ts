import { done, fanOut, final, to } from "@sluice/core";
import { contextOf, decide, type Effect, follow, type MachineInput, type Transition } from "@sluice/core/machine";
import { expect, test } from "vitest";
import {
  byEvents,
  completed,
  type Definition,
  effectOf,
  enteredBy,
  event,
  failed,
  started,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

type Rows = NonNullable<Definition["transitions"]>;
const stages = { a: byEvents(), b: work(), c: work(), d: work(), ok: final("completed") };
const REST: Rows = [
  { from: "b", on: "success", to: "ok", approval: { message: "Release it?" } },
  { from: "c", on: "success", to: fanOut(["b", "d"], { join: "ok" }), approval: {} },
  { from: "c", on: "failure", to: "a", approval: {} },
  { from: "a", on: { event: "B" }, to: "b" },
  { from: "a", on: { event: "C" }, to: "c" },
];
const machine = (rows: Rows = []) => started({ stages, transitions: [...rows, ...REST] });
type About = Extract<MachineInput, { readonly kind: "event" | "result" | "children" }>;
type Approve = Extract<Effect, { readonly kind: "approve" }>;

/** A person's answer to what a transition asks. */
function answer(of: About, next: Transition, approved: boolean, reason?: string): MachineInput {
  const { decision }: Approve = effectOf(next, "approve");
  return { kind: "answer", of, decision, approved, ...(reason === undefined ? {} : { reason }) };
}

test("a row with an approval asks first, and nothing has changed yet", async () => {
  const { step, state } = await machine([
    {
      from: "a",
      on: { event: "DEPLOY" },
      to: to("b", undefined, { context: { sent: true } }),
      approval: { message: "Deploy?" },
    },
  ]);
  const before = structuredClone({ ...state, outputs: state.outputs.object });
  const next = await step(event("DEPLOY", { n: 1 }));
  expect(next.effect).toEqual({
    kind: "approve",
    message: "Deploy?",
    from: "a",
    to: "b",
    event: "DEPLOY",
    decision: next.trace,
  });
  expect(next.trace).toMatchObject({ by: "event", row: 0, approval: { message: "Deploy?", row: 0 } });
  expect(next.patch).toEqual({});
  expect({ ...state, outputs: state.outputs.object }).toEqual(before);
});

test("an approved event moves as if no one had been asked, and its trace says that someone approved", async () => {
  const { step, state } = await machine([{ from: "a", on: { event: "DEPLOY" }, to: "b", approval: {} }]);
  const asked = event("DEPLOY", { n: 1 });
  const next = await step(answer(asked, await step(asked), true));
  expect(enteredBy(next)).toBe("b");
  expect(next.trace).toEqual({
    by: "event",
    event: "DEPLOY",
    context: { n: 1 },
    row: 0,
    approved: true,
    choice: { kind: "to", state: "b", input: null },
  });
  expect(state).toMatchObject({ hops: 1, context: { n: 1 } });
  expect(contextOf(state).upstream.a).toEqual({ event: "DEPLOY", data: { n: 1 } });
});

test("a denied event stays, with the person's reason, and merges nothing", async () => {
  const { step, state } = await machine([{ from: "a", on: { event: "DEPLOY" }, to: "b", approval: {} }]);
  const asked = event("DEPLOY", { n: 1 });
  const next = await step(answer(asked, await step(asked), false, "not on a Friday"));
  expect(effectOf(next, "stay").reason).toBe("the move from a to b was not approved: not on a Friday");
  expect(next.trace.context).toBeUndefined();
  expect(next.trace.approved).toBeUndefined();
  expect(state).toMatchObject({ hops: 0, context: {}, at: { state: "a", visit: 1 } });
});

test("a denial without a reason says only that", async () => {
  const { step } = await machine([{ from: "a", on: { event: "DEPLOY" }, to: "b", approval: {} }]);
  const asked = event("DEPLOY");
  for (const reason of [undefined, ""])
    expect(effectOf(await step(answer(asked, await step(asked), false, reason)), "stay").reason).toBe(
      "the move from a to b was not approved",
    );
});

test("a denied row after a result ends the run with the code approval_denied", async () => {
  const { step } = await machine();
  await step(event("B"));
  const asked = completed("built");
  const next = await step(asked);
  expect(next.effect).toMatchObject({ kind: "approve", message: "Release it?", from: "b", to: "ok" });
  const denied = await step(answer(asked, next, false, "no"));
  expect(effectOf(denied, "end").end).toEqual({
    status: "failed",
    code: "approval_denied",
    message: "the move from b to ok was not approved: no",
  });
  // What the state did is kept, whether or not what follows is approved.
  expect(denied.patch).toMatchObject({ turns: [{ state: "b", turns: 2 }], outputs: [{ state: "b", output: "built" }] });
});

test("an approved row after a result is followed with that result", async () => {
  const { step } = await machine();
  await step(event("B"));
  const asked = completed("built");
  expect(effectOf(await step(answer(asked, await step(asked), true)), "end").end).toEqual({
    status: "completed",
    output: "built",
    state: "ok",
  });
});

test("a fan-out can need an approval, before any child is started", async () => {
  const { step, state } = await machine();
  await step(event("C"));
  const asked = completed(1);
  const next = await step(asked);
  expect(next.effect).toMatchObject({ kind: "approve", to: "b and d, then ok" });
  expect(state.counts.has("d")).toBe(false);
  const { children } = effectOf(await step(answer(asked, next, true)), "fanOut");
  expect(children.map(({ key }) => key)).toEqual(["b", "d"]);
});

test("the failure row of a failed fan-out can need an approval", async () => {
  const { step } = await machine([{ from: "c", on: "success", to: fanOut(["b", "d"], { join: "ok" }) }]);
  await step(event("C"));
  await step(completed(1));
  const error = { code: "tool", message: "broke" };
  const asked: About = {
    kind: "children",
    ended: [
      { key: "b", turns: 1, status: "failed", ...error },
      { key: "d", turns: 1, status: "completed", output: 1 },
    ],
  };
  const next = await step(asked);
  expect(effectOf(next, "approve").to).toBe("a");
  expect(enteredBy(await step(answer(asked, next, true)))).toBe("a");
});

test("every kind of edge can need one: the end of a run, too", async () => {
  const { step } = await machine([
    { from: "a", on: { event: "STOP" }, to: done("over"), approval: {} },
    { from: "a", on: "failure", to: done("gave up"), approval: {} },
  ]);
  expect(effectOf(await step(event("STOP")), "approve").to).toBe("the end of the run");
  expect(effectOf(await step(failed("broke")), "approve").to).toBe("the end of the run");
});

test("no answer follows from a decision that asked no one", async () => {
  const { spec, state } = await machine();
  const of = event("B");
  const decision = await decide(spec, state, of);
  expect(() => decide(spec, state, { kind: "answer", of, decision, approved: true })).toThrow("needs no approval");
});

test("a decision that was recorded while it waited asks again when it is followed", async () => {
  const { spec, state } = await machine([{ from: "a", on: { event: "DEPLOY" }, to: "b", approval: {} }]);
  const decision = await decide(spec, state, event("DEPLOY"));
  expect(follow(spec, state, completed(1), decision).effect.kind).toBe("approve");
});

test("the row that fires decides about the approval, not one before it", async () => {
  const never = { text: "never", evaluate: () => ({ fires: false, why: "never" }) };
  const { step } = await machine([
    { from: "a", on: { event: "GO" }, when: never, to: "c", approval: {} },
    { from: "a", on: { event: "GO" }, to: "b" },
  ]);
  expect(enteredBy(await step(event("GO")))).toBe("b");
});

test("a * row asks as any other", async () => {
  const { step } = await machine([{ from: "a", on: { event: "*" }, to: "b", approval: { message: "Sure?" } }]);
  expect((await step(event("ANYTHING"))).effect).toMatchObject({
    kind: "approve",
    message: "Sure?",
    event: "ANYTHING",
    decision: { by: "safe_next" },
  });
});

test.each(['"false"', '"true"', "1", "{}", "null"])("an answer that is approved as %s is none", async (text) => {
  const { step } = await machine([{ from: "a", on: { event: "DEPLOY" }, to: "b", approval: {} }]);
  const asked = await step(event("DEPLOY"));
  expect((await step(answer(event("DEPLOY"), asked, JSON.parse(text)))).effect).toMatchObject({ kind: "stay" });
});
