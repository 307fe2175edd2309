import { backToInterrupted, done, fanOut, final, type JsonObject, stage, to } from "@sluice/core";
import { contextOf, type MachineInput } from "@sluice/core/machine";
import { expect, test } from "vitest";
import {
  byEvents,
  completed,
  type Definition,
  effectOf,
  enteredBy,
  event,
  failed,
  problemsIn,
  started,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

type Rows = NonNullable<Definition["transitions"]>;
const stages = { a: byEvents(), b: work(), c: work(), audit: byEvents(), docs: work(), ok: final("completed") };
const interrupts = {
  security: { files: "src/auth/**", target: "audit" },
  readme: { files: "*.md", target: "docs" },
};
const REST: Rows = [
  { from: "a", on: { event: "B" }, to: "b" },
  { from: "b", on: "success", to: "ok" },
  { from: "c", on: "success", to: "ok" },
  { from: "audit", on: { event: "FINE" }, to: backToInterrupted() },
  { from: "audit", on: { event: "LEAVE" }, to: "c" },
  { from: "audit", on: { event: "END" }, to: "ok" },
  { from: "audit", on: { event: "SPREAD" }, to: fanOut(["b", "c"], { join: "ok" }) },
  { from: "docs", on: "success", to: backToInterrupted() },
];
const machine = (more: Partial<Definition> = {}) =>
  started({ stages, interrupts, transitions: REST, ...more }, { n: 1 });
const security: MachineInput = { kind: "interrupt", name: "security", path: "src/auth/login.ts" };
const readme: MachineInput = { kind: "interrupt", name: "readme", path: "README.md" };

test("an interrupt enters its target with the name and the file, and the execution before it waits", async () => {
  const { step, state } = await machine();
  const next = await step(security);
  expect(next.effect).toEqual({
    kind: "enter",
    state: "audit",
    input: { interrupt: "security", files: ["src/auth/login.ts"] },
  });
  expect(next.trace).toMatchObject({ by: "interrupt" });
  // The interrupted state has not ended: it has no output and no turns yet.
  expect(next.patch).toMatchObject({ hops: 0, suspend: { interrupt: "security" } });
  expect(next.patch.outputs).toBeUndefined();
  expect(next.patch.turns).toBeUndefined();
  expect(state.suspended).toEqual([
    { at: { state: "a", visit: 1, input: { n: 1 } }, joined: undefined, interrupt: "security" },
  ]);
  expect(state).toMatchObject({ at: { state: "audit", visit: 1 }, hops: 0 });
});

test("a return continues the suspended execution where it was, with the handler's output and data", async () => {
  const { step, state } = await machine();
  await step(security);
  const next = await step(event("FINE", { checked: true }));
  expect(next.effect).toEqual({ kind: "return" });
  expect(next.trace.choice).toEqual({ kind: "return" });
  expect(next.patch).toMatchObject({ resume: true, hops: 1 });
  expect(next.patch.unwind).toBeUndefined();
  expect(state).toMatchObject({ at: { state: "a", visit: 1, input: { n: 1 } }, suspended: [], hops: 1 });
  expect(state.context).toEqual({ checked: true });
  expect(contextOf(state).upstream).toEqual({ audit: { event: "FINE", data: { checked: true } } });
  // It is the same visit, and goes on like any other.
  expect(state.counts.get("a")).toEqual({ visits: 1, turns: 0 });
  expect(enteredBy(await step(event("B")))).toBe("b");
});

test("a handler with an output returns by its row, and its turns count", async () => {
  const { step, state } = await machine();
  await step(readme);
  expect((await step(completed("noted"))).effect).toEqual({ kind: "return" });
  expect(state.counts.get("docs")).toEqual({ visits: 1, turns: 2 });
  expect(contextOf(state).upstream).toEqual({ docs: "noted" });
});

test("a suspended join remembers how its fan-out ended", async () => {
  const transitions: Rows = [
    { from: "a", on: { event: "GO" }, to: fanOut(["b"], { join: "c" }) },
    { from: "c", on: "success", to: "ok" },
    { from: "docs", on: "success", to: backToInterrupted() },
  ];
  const { audit: _unused, ...rest } = stages;
  const { step, state } = await started({ stages: rest, interrupts: { readme: interrupts.readme }, transitions });
  await step(event("GO"));
  await step({ kind: "children", ended: [{ key: "b", turns: 1, status: "completed", output: 1 }] });
  const { joined } = state;
  expect(joined).toEqual({ fork: { b: { status: "completed" } } });
  await step(readme);
  expect(state.joined).toBeUndefined();
  expect(contextOf(state).fork).toBeUndefined();
  await step(completed(1));
  expect(state.joined).toEqual(joined);
});

test("interrupts nest: a return continues the innermost", async () => {
  const { step, state } = await machine();
  await step(security);
  const second = await step(readme);
  expect(second.patch.unwind).toBeUndefined();
  expect(state.suspended.map(({ at, interrupt }) => [at.state, interrupt])).toEqual([
    ["a", "security"],
    ["audit", "readme"],
  ]);
  await step(completed(1));
  expect(state.at).toMatchObject({ state: "audit" });
  expect(state.suspended.map(({ at }) => at.state)).toEqual(["a"]);
  await step(event("FINE"));
  expect(state).toMatchObject({ at: { state: "a" }, suspended: [] });
});

test("any other move of a handler ends everything that is suspended", async () => {
  const { step, state } = await machine();
  await step(security);
  await step(readme);
  await step(completed(1));
  const next = await step(event("LEAVE"));
  expect(next.patch).toMatchObject({ unwind: true, enter: { state: "c" } });
  expect(state).toMatchObject({ at: { state: "c" }, suspended: [] });
});

test.each<readonly [string, MachineInput]>([
  ["an end", event("END")],
  ["a fan-out", event("SPREAD")],
  ["an unhandled failure", failed("broke")],
  ["a cancel", { kind: "cancelled", reason: "enough" }],
])("%s of a handler ends what is suspended", async (_name, input) => {
  const { step, state } = await machine();
  await step(security);
  expect((await step(input)).patch.unwind).toBe(true);
  expect(state.suspended).toEqual([]);
});

test("a handler that a person interrupts keeps what is suspended", async () => {
  const { step, state } = await machine();
  await step(readme);
  const facts = { executionId: "docs#1", attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  const result = { ...facts, status: "cancelled", reason: "interrupted" } as const;
  expect(enteredBy(await step({ kind: "interrupted", result, by: "ann", reason: "" }))).toBe("docs");
  expect(state.suspended.map(({ at }) => at.state)).toEqual(["a"]);
});

test("a handler that stays keeps what is suspended", async () => {
  const { step, state } = await machine();
  await step(security);
  expect((await step(event("NO_SUCH"))).patch).toEqual({});
  expect(state.suspended).toHaveLength(1);
});

test("a return with nothing suspended stays, for an event", async () => {
  const { step, state } = await machine({
    transitions: [...REST, { from: "a", on: { event: "BACK" }, to: backToInterrupted() }],
  });
  const next = await step(event("BACK", { n: 1 }));
  expect(effectOf(next, "stay").reason).toBe("nothing is suspended, so there is nothing to return to");
  expect(state.context).toEqual({});
});

test("a return with nothing suspended fails the run, for a result", async () => {
  const { step } = await machine({ transitions: [{ from: "a", on: "failure", to: backToInterrupted() }, ...REST] });
  const next = await step(failed("broke"));
  expect(effectOf(next, "end").end).toMatchObject({ status: "failed", code: "failed" });
  expect(next.trace.rejected).toContain("nothing is suspended");
});

test("a function may return as well", async () => {
  const { step, state } = await started({
    stages: { a: work(), h: work() },
    interrupts: { any: { files: "**", target: "h" } },
    next: { a: () => done(1), h: () => backToInterrupted() },
  });
  await step({ kind: "interrupt", name: "any", path: "x" });
  expect((await step(completed(1))).effect).toEqual({ kind: "return" });
  expect(state.at).toMatchObject({ state: "a" });
});

test("a handler's visits are capped, its interrupt is no hop, and its return is one", async () => {
  const visits = await machine({ limits: { maxVisits: 1, maxHops: 50 } });
  await visits.step(security);
  await visits.step(event("FINE"));
  const again = await visits.step(security);
  expect(effectOf(again, "end").end).toMatchObject({ code: "limit_visits" });
  const nested = await machine({ limits: { maxVisits: 1, maxHops: 50 } });
  await nested.step(security);
  expect((await nested.step(security)).patch.unwind).toBe(true);
  const hops = await machine({ limits: { maxHops: 1, maxVisits: 9 } });
  await hops.step(security);
  await hops.step(event("FINE"));
  await hops.step(security);
  const last = await hops.step(event("FINE", { late: true }));
  expect(effectOf(last, "end").end).toMatchObject({ code: "limit_hops" });
  expect(last.patch.unwind).toBe(true);
  expect(hops.state.context).toEqual({});
});

test("an interrupt that the pipeline does not have is a fault of who reports it", async () => {
  const { step } = await machine();
  await expect(step({ kind: "interrupt", name: "nobody", path: "x" })).rejects.toThrow("no interrupt nobody");
});

// The definition

const plain = stage({ prompt: "Work.", completionTool: "submit", completionSchema: { type: "object" }, turnCap: 3 });
const TABLE: Rows = [
  { from: "a", on: "success", to: done(1) },
  { from: "h", on: "success", to: backToInterrupted() },
];
const problems = (files: unknown, target: unknown, h = plain) => {
  const interrupt: { files: string; target: string } = JSON.parse(JSON.stringify({ files, target }));
  return problemsIn({ stages: { a: plain, h }, transitions: TABLE, interrupts: { i: interrupt } });
};

test("the target of an interrupt counts as reachable, and its files use the grammar of tool patterns", () => {
  expect(problems("src/{a,b}/*.ts", "h")).toEqual([]);
  expect(problems("../x", "h")).toEqual(["interrupts.i.files | a scope cannot climb with .. | name the folder itself"]);
  expect(problems("/etc/**", "h")[0]).toContain("interrupts.i.files | a scope is relative to the workspace");
  expect(problems("", "h")[0]).toContain("interrupts.i.files | must be a pattern of paths in the workspace");
  expect(problems(7, "h")[0]).toContain("interrupts.i.files | must be a pattern of paths in the workspace");
});

test("the target of an interrupt is a state that runs and can read what an interrupt gives", () => {
  expect(problems("**", "hh")).toContain('interrupts.i.target | there is no state "hh" | did you mean "h"?');
  expect(problems("**", 7)).toContain("interrupts.i.target | must be the name of a state");
  const transitions: Rows = [{ from: "a", on: "success", to: "ok" }];
  const ends = { stages: { a: plain, ok: final("completed") }, transitions };
  expect(problemsIn({ ...ends, interrupts: { i: { files: "**", target: "ok" } } })).toEqual([
    "interrupts.i.target | ok is a final state, which handles nothing",
  ]);
  const of = (properties: JsonObject, required: readonly string[]) =>
    stage({
      inputSchema: { type: "object", properties, required: [...required] },
      prompt: "Work.",
      completionTool: "submit",
      completionSchema: { type: "object" },
      turnCap: 3,
    });
  const focus = { type: "string" };
  expect(problems("**", "h", of({ focus }, ["focus"]))[0]).toContain("the inputSchema of h needs focus");
  const list = { type: "array", items: { type: "string" } };
  expect(problems("**", "h", of({ interrupt: focus, files: list }, ["interrupt", "files"]))).toEqual([]);
});

test("interrupts are an object by name", () => {
  const interrupts: Record<string, never> = JSON.parse('["x"]');
  const transitions: Rows = [{ from: "a", on: "success", to: to("a") }];
  const problems = problemsIn({ stages: { a: plain }, transitions, interrupts });
  expect(problems.join("\n")).toContain("interrupts");
  const unnamed: Record<string, { files: string; target: string }> = { $return: { files: "**", target: "a" } };
  expect(problemsIn({ stages: { a: plain }, transitions, interrupts: unnamed })).toContain(
    'interrupts.$return | "$return" is reserved',
  );
});
