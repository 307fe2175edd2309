import { expect, test, vi } from "vitest";
import { z } from "zod";
import { done, fail, fanOut, route, to } from "../../packages/core/src/definition/choice.ts";
import { type PipelineDefinition, readDefinition } from "../../packages/core/src/definition/read.ts";
import type { StageResult } from "../../packages/core/src/definition/result.ts";
import { decideNext } from "../../packages/core/src/machine/decide-next.ts";
import { CONTEXT, completed, failed, focusedStage, plainStage, skipped } from "../support/definition.ts";

/** Decides after `plan` in a pipeline with these routes, whether or not its definition would be let through. */
function decide(
  routes: Partial<Pick<PipelineDefinition, "next" | "transitions">>,
  result: StageResult<unknown>,
  from = "plan",
) {
  const stages = { plan: plainStage, test: plainStage, lint: plainStage, review: focusedStage };
  const { spec } = readDefinition({ id: "p", input: z.object({}), stages, initial: "plan", ...routes });
  return decideNext(spec, from, result, CONTEXT, false);
}

// By function

test("the success route gets the result and the context, and its choice is checked", async () => {
  const plan = vi.fn(() => to("review", { focus: "x" }));
  const result = completed({ ok: true });
  expect(await decide({ next: { plan } }, result)).toEqual({
    by: "function",
    choice: { kind: "to", state: "review", input: { focus: "x" } },
  });
  expect(plan).toHaveBeenCalledExactlyOnceWith(result, CONTEXT);
});

test("each way to end has its own route, and only that one is asked", async () => {
  const next = {
    plan: { completed: vi.fn(() => done(1)), failed: vi.fn(() => to("test")), skipped: vi.fn(() => to("lint")) },
  };
  expect((await decide({ next }, failed("x"))).choice).toMatchObject({ state: "test" });
  expect((await decide({ next }, skipped())).choice).toMatchObject({ state: "lint" });
  expect(next.plan.completed).not.toHaveBeenCalled();
});

test("an unhandled failure fails the run with the failure's own message", async () => {
  expect(await decide({ next: { plan: () => done(1) } }, failed("the disk is full"))).toEqual({
    by: "default",
    choice: { kind: "fail", reason: "plan failed (tool): the disk is full" },
  });
});

test("an unhandled skip, and a success that nothing routes, fail the run", async () => {
  expect((await decide({ next: { plan: () => done(1) } }, skipped())).choice).toEqual({
    kind: "fail",
    reason: "plan was skipped, and no route says what comes next",
  });
  expect(await decide({ next: { plan: () => done(1) } }, completed(1), "test")).toEqual({
    by: "default",
    choice: { kind: "fail", reason: "test completed, and next says nothing about test" },
  });
});

test("a failure of a state that no route is for fails the run with its own message", async () => {
  for (const result of [failed("the disk is full"), skipped()]) {
    expect(await decide({ next: { plan: () => done(1) } }, result, "test")).toEqual({
      by: "default",
      choice: { kind: "fail", reason: expect.stringMatching(/^test (failed|was skipped)/) },
    });
  }
});

test("a cancelled state cancels, whatever the routes say", async () => {
  const cancelled = { ...completed(1), status: "cancelled", reason: "the user stopped it" } as const;
  const always = { from: "*", on: "failure", to: done(1) } as const;
  const wanted = { by: "default", choice: { kind: "cancel", reason: "the user stopped it" } };
  expect(await decide({ next: { plan: () => done(1) } }, cancelled)).toEqual(wanted);
  expect(await decide({ transitions: [always] }, cancelled)).toEqual(wanted);
});

test("a pause without a route fails the run", async () => {
  const paused = { ...completed(1), status: "paused", request: null } as const;
  expect((await decide({ next: { plan: () => done(1) } }, paused)).choice).toMatchObject({ kind: "fail" });
});

test("a route that throws fails the run and says so", async () => {
  const boom = () => {
    throw new Error("no such thing");
  };
  expect(await decide({ next: { plan: boom } }, completed(1))).toEqual({
    by: "function",
    rejected: "the completed route of plan threw: no such thing",
    at: expect.stringMatching(/routing\.test\.ts:\d+:\d+$/),
    choice: { kind: "fail", reason: "the completed route of plan threw: no such thing" },
  });
});

test.each<readonly [string, () => unknown, string]>([
  ["nothing", () => undefined, "undefined is not a choice"],
  ["an unknown state", () => to("tset"), 'did you mean "test"?'],
  ["a payload that does not fit", () => to("review", { focus: 1 }), "$.focus must be string"],
])("a route that returns %s fails the run and says so", async (_name, plan, reason) => {
  const decision = await decide({ next: { plan } }, completed(1));
  expect(decision).toMatchObject({ by: "function", choice: { kind: "fail" } });
  expect(decision.rejected).toContain(`the completed route of plan cannot be followed: `);
  expect(decision.rejected).toContain(reason);
});

test("a route that rejects is heard", async () => {
  const decision = await decide({ next: { plan: () => Promise.reject(new Error("late")) } }, completed(1));
  expect(decision.rejected).toBe("the completed route of plan threw: late");
});

test("a declared route is held to what it declared, in every part of a choice", async () => {
  const declared = (choice: unknown) =>
    decide({ next: { plan: route(["test"], vi.fn().mockReturnValue(choice)) } }, completed(1));
  expect((await declared(to("test"))).choice).toMatchObject({ kind: "to", state: "test" });
  expect((await declared(done(1))).choice).toMatchObject({ kind: "done" });
  for (const choice of [to("lint"), fanOut(["lint"], { join: "test" }), fanOut(["test"], { join: "lint" })]) {
    const decision = await declared(choice);
    expect(decision.rejected).toBe("the completed route of plan went to lint, but was declared for test");
    expect(decision.choice).toMatchObject({ kind: "fail" });
  }
});

test("a route to an undeclared state is rejected with all states that it was declared for", async () => {
  const decision = await decide(
    { next: { plan: route(["test", "plan"], vi.fn().mockReturnValue(to("lint"))) } },
    completed(1),
  );
  expect(decision.rejected).toBe("the completed route of plan went to lint, but was declared for test, plan");
});

test("a route that was declared for no state may only end the run", async () => {
  const decision = await decide({ next: { plan: route([], vi.fn().mockReturnValue(to("lint"))) } }, completed(1));
  expect(decision.rejected).toBe("the completed route of plan went to lint, but was declared for no state");
  const ends = await decide({ next: { plan: route([], () => done(1)) } }, completed(1));
  expect(ends).toEqual({ by: "function", choice: { kind: "done", output: 1 } });
});

test("an empty list of stages ends the run with the state's own output", async () => {
  const plan = () => ({ stages: [], execution: "sequential" });
  expect((await decide({ next: { plan } }, completed({ a: 1 }))).choice).toEqual({ kind: "done", output: { a: 1 } });
  expect((await decide({ next: { plan: { completed: plan, failed: plan } } }, failed("x"))).choice).toEqual({
    kind: "done",
    output: null,
  });
});

// By table

test("the first row that matches wins, and the rows before it say why they did not", async () => {
  const transitions: PipelineDefinition["transitions"] = [
    { from: "test", on: "success", to: "plan" },
    { from: "plan", on: "failure", to: "plan" },
    { from: "plan", on: "success", when: () => false, to: "plan" },
    { from: "*", on: "success", to: "test" },
    { from: "plan", on: "success", to: "lint" },
  ];
  expect(await decide({ transitions }, completed(1))).toEqual({
    by: "table",
    row: 3,
    rejectedRows: [
      { row: 1, why: "it is for failure, this was success" },
      { row: 2, why: "its condition returned false" },
    ],
    choice: { kind: "to", state: "test", input: null },
  });
});

test("a wildcard row first beats a specific one after it", async () => {
  const transitions: PipelineDefinition["transitions"] = [
    { from: "*", on: "success", to: "test" },
    { from: "plan", on: "success", to: "lint" },
  ];
  expect(await decide({ transitions }, completed(1))).toEqual({
    by: "table",
    row: 0,
    choice: { kind: "to", state: "test", input: null },
  });
});

test("failure and skipped have rows of their own", async () => {
  const transitions: PipelineDefinition["transitions"] = [
    { from: "plan", on: "success", to: done(1) },
    { from: "plan", on: "failure", to: "test" },
    { from: "plan", on: "skipped", to: "lint" },
  ];
  expect(await decide({ transitions }, failed("x"))).toMatchObject({ row: 1, choice: { state: "test" } });
  expect(await decide({ transitions }, skipped())).toMatchObject({ row: 2, choice: { state: "lint" } });
});

test("a row whose condition says yes fires, and a promise of a yes is one", async () => {
  for (const when of [() => true, vi.fn().mockResolvedValue(true)]) {
    const transitions: PipelineDefinition["transitions"] = [
      { from: "plan", on: "success", when, to: "test" },
      { from: "plan", on: "success", to: "lint" },
    ];
    expect(await decide({ transitions }, completed(1))).toEqual({
      by: "table",
      row: 0,
      choice: { kind: "to", state: "test", input: null },
    });
  }
});

test("a condition gets the result and the context", async () => {
  const when = vi.fn(() => true);
  const result = completed({ ok: 1 });
  await decide({ transitions: [{ from: "plan", on: "success", when, to: done(1) }] }, result);
  expect(when).toHaveBeenCalledExactlyOnceWith(result, CONTEXT);
});

test.each<readonly [string, () => unknown, string]>([
  [
    "throws",
    () => {
      throw new Error("no field");
    },
    "its condition failed: no field",
  ],
  ["rejects", () => Promise.reject(new Error("no field")), "its condition failed: no field"],
  ["answers something true", () => "yes", "its condition returned a string, not true or false"],
  ["answers nothing", () => undefined, "its condition returned nothing, not true or false"],
  ["answers null", () => null, "its condition returned null, not true or false"],
])("a condition that %s does not match and is reported", async (_name, answer, why) => {
  const when = vi.fn().mockImplementation(answer);
  const transitions: PipelineDefinition["transitions"] = [
    { from: "plan", on: "success", when, to: "test" },
    { from: "plan", on: "success", to: "lint" },
  ];
  expect(await decide({ transitions }, completed(1))).toMatchObject({
    row: 1,
    rejectedRows: [{ row: 0, why }],
    choice: { state: "lint" },
  });
});

test("no row at all fails the run with why each row did not fire", async () => {
  const transitions: PipelineDefinition["transitions"] = [
    { from: "plan", on: "failure", to: "test" },
    { from: "plan", on: "success", when: () => false, to: "test" },
  ];
  const decision = await decide({ transitions }, completed(1));
  expect(decision).toMatchObject({ by: "default", rejectedRows: [{ row: 0 }, { row: 1 }] });
  expect(decision.choice).toEqual({
    kind: "fail",
    reason:
      "plan completed, and no row says what comes next (row 0: it is for failure, this was success; row 1: its condition returned false)",
  });
  expect(await decide({ transitions }, completed(1), "test")).toEqual({
    by: "default",
    choice: { kind: "fail", reason: "test completed, and no row says what comes next (no row is for test)" },
  });
});

test("a failure without a row is a failure, never a success", async () => {
  const transitions: PipelineDefinition["transitions"] = [{ from: "plan", on: "success", to: done(1) }];
  expect((await decide({ transitions }, failed("the disk is full"))).choice).toEqual({
    kind: "fail",
    reason: "plan failed (tool): the disk is full",
  });
});

test("a row whose target cannot be entered fails the run and names the row", async () => {
  const transitions: PipelineDefinition["transitions"] = [{ from: "plan", on: "success", to: "review" }];
  const decision = await decide({ transitions }, completed(1));
  expect(decision).toMatchObject({ by: "table", row: 0, choice: { kind: "fail" } });
  expect(decision.rejected).toContain("row 0 of plan cannot be followed: the input of review does not fit");
});

test("a row may end the run or fan out", async () => {
  const ends = (choice: ReturnType<typeof fail> | ReturnType<typeof fanOut>) =>
    decide({ transitions: [{ from: "*", on: "success", to: choice }] }, completed(1));
  expect((await ends(fail("enough"))).choice).toEqual({ kind: "fail", reason: "enough" });
  expect((await ends(fanOut(["test", "lint"], { join: "plan" }))).choice).toMatchObject({
    kind: "fanOut",
    join: "plan",
  });
});
