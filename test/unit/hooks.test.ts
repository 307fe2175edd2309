import { getEventListeners } from "node:events";
import type { GuardedCall, GuardHook, StageContext } from "@sluice/core";
import { expect, test } from "vitest";
import { type NamedGuard, runGuardHooks } from "../../packages/core/src/gate/guard-hooks.ts";
import { handClock } from "../support/hand-clock.ts";

const call: GuardedCall = {
  tool: "Edit",
  kind: "agent",
  input: { path: "a" },
  executionId: "plan#1",
  attempt: 1,
  proposalId: "t1.c0",
  argsDigest: "d",
  approvedBy: "envelope",
};
const ctx: StageContext = {
  runId: "r1",
  task: "",
  run: { input: {} },
  input: {},
  upstream: {},
  context: {},
  setup: null,
  attempt: 1,
  visit: 1,
  workspace: "/ws",
};
const never: GuardHook = () => new Promise(() => undefined);

function guards(...hooks: readonly GuardHook[]): readonly NamedGuard[] {
  return hooks.map((hook, at) => ({ name: ["session", "pipeline", "state"][at] ?? "more", hook }));
}

test("without a veto the call goes through, each hook having been asked once, in order", async () => {
  const asked: string[] = [];
  const hook =
    (name: string): GuardHook =>
    async (seen) => {
      asked.push(`${name} ${seen.tool}`);
      return undefined;
    };
  const clock = handClock();
  expect(await runGuardHooks(guards(hook("a"), hook("b"), hook("c")), call, ctx, { clock })).toEqual({});
  expect(asked).toEqual(["a Edit", "b Edit", "c Edit"]);
  expect(clock.waiting()).toBe(0);
});

test("the first veto stands, with whose it is, and no one further is asked", async () => {
  const asked: string[] = [];
  const last: GuardHook = () => {
    asked.push("last");
    return undefined;
  };
  const list = guards(
    () => undefined,
    () => ({ veto: "not on Fridays" }),
    last,
  );
  const verdict = await runGuardHooks(list, call, ctx, { clock: handClock() });
  expect(verdict).toEqual({ vetoed: { hook: "pipeline", reason: "not on Fridays" } });
  expect(asked).toEqual([]);
});

test.each([
  [
    "throws",
    () => {
      throw new Error("broken");
    },
  ],
  ["rejects", () => Promise.reject(new Error("broken"))],
])("a hook that %s vetoes", async (_, hook) => {
  const clock = handClock();
  const verdict = await runGuardHooks(guards(hook), call, ctx, { clock });
  expect(verdict.vetoed).toMatchObject({ hook: "session", reason: expect.stringContaining("broken") });
  expect(clock.waiting()).toBe(0);
});

test.each(["true", "null", "{}", '{"veto": true}', '"veto"', '{"allow": true}'])(
  "a hook that answers %s vetoes",
  async (answer) => {
    const hook: GuardHook = () => JSON.parse(answer);
    const { vetoed } = await runGuardHooks(guards(hook), call, ctx, { clock: handClock() });
    expect(vetoed).toEqual({ hook: "session", reason: expect.stringContaining("veto: reason") });
  },
);

test("a veto without a reason is one all the same", async () => {
  const empty: GuardHook = () => Object.assign(JSON.parse("{}"), { veto: undefined });
  expect((await runGuardHooks(guards(empty), call, ctx, { clock: handClock() })).vetoed).toBeDefined();
});

test("no hook is left listening for a cancel, however it answered", async () => {
  const { signal } = new AbortController();
  const list = guards(
    () => undefined,
    () => ({ veto: "no" }),
  );
  await runGuardHooks(list, call, ctx, { clock: handClock(), signal });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a hook that takes 5 seconds vetoes, each hook having its own 5 seconds", async () => {
  const clock = handClock();
  const slow: GuardHook = () => new Promise((resolve) => clock.after(4_000, () => resolve(undefined)));
  const verdict = runGuardHooks(guards(slow, never), call, ctx, { clock });
  clock.turn(4_000);
  await Promise.resolve();
  await new Promise(setImmediate);
  clock.turn(4_999);
  expect(clock.waiting()).toBe(1);
  clock.turn(1);
  expect(await verdict).toEqual({ vetoed: { hook: "pipeline", reason: "the hook took longer than 5000 ms" } });
  expect(clock.waiting()).toBe(0);
});

test("what a hook says too late changes nothing and is no unhandled rejection", async () => {
  const clock = handClock();
  const late: GuardHook = () => new Promise((_, reject) => clock.after(20, () => reject(new Error("late"))));
  const verdict = runGuardHooks(guards(late), call, ctx, { clock, timeoutMs: 10 });
  clock.turn(10);
  expect((await verdict).vetoed?.reason).toContain("longer than 10 ms");
  clock.turn(10);
  await new Promise(setImmediate);
});

test("a cancel ends the wait at once, and lets nothing through", async () => {
  const clock = handClock();
  const controller = new AbortController();
  const verdict = runGuardHooks(guards(never), call, ctx, { clock, signal: controller.signal });
  controller.abort();
  expect((await verdict).vetoed).toMatchObject({ hook: "session", reason: expect.stringContaining("cancelled") });
  expect(clock.waiting()).toBe(0);
  const already = await runGuardHooks(
    guards(() => undefined),
    call,
    ctx,
    { clock, signal: controller.signal },
  );
  expect(already.vetoed).toBeDefined();
});

test("no hook can change the call for the next one", async () => {
  const seen: string[] = [];
  const meddling: GuardHook = (given) => {
    Reflect.set(given, "tool", "Read");
    return undefined;
  };
  const list = guards(meddling, (given) => {
    seen.push(given.tool);
    return undefined;
  });
  await runGuardHooks(list, call, ctx, { clock: handClock() });
  expect(seen).toEqual(["Edit"]);
});
