import { expect, test } from "vitest";
import { z } from "zod";
import { isJson } from "../../packages/core/src/base/json.ts";
import { stage } from "../../packages/core/src/definition/agents/stage.ts";
import { cancel, done, fail, fanOut, forEach, to } from "../../packages/core/src/definition/choice.ts";
import { pipeline } from "../../packages/core/src/definition/pipeline.ts";
import { resolveChoice } from "../../packages/core/src/machine/resolve-choice.ts";
import { focusedStage, plainStage } from "../support/definition.ts";

const slow = stage({
  inputSchema: z.object({ id: z.string().refine(async (id) => id === "known", "is not known") }),
  prompt: "x",
  completionTool: "submit",
  completionSchema: z.object({}),
  turnCap: 1,
});
const measured = stage({
  inputSchema: z.object({ text: z.string() }).transform(({ text }) => ({ length: text.length })),
  prompt: "x",
  completionTool: "submit",
  completionSchema: z.object({}),
  turnCap: 1,
});
const open = stage({
  inputSchema: z.object({ hint: z.string().optional() }),
  prompt: "x",
  completionTool: "submit",
  completionSchema: z.object({}),
  turnCap: 1,
});
const { spec } = pipeline({
  id: "p",
  input: z.object({}),
  stages: { plan: plainStage, test: plainStage, lint: plainStage, review: focusedStage, slow, measured, open },
  initial: "plan",
  next: { plan: () => done(1) },
});

/** The choice, or why it is none. */
async function read(value: unknown): Promise<unknown> {
  const reading = await resolveChoice(value, spec, { own: "output" });
  if (!reading.ok) return reading.reason;
  expect(isJson(reading.choice)).toBe(true);
  return reading.choice;
}

test.each<readonly [string, unknown, unknown]>([
  ["to without input", to("test"), { kind: "to", state: "test", input: null }],
  ["to with an input that fits", to("review", { focus: "x" }), { kind: "to", state: "review", input: { focus: "x" } }],
  ["to with any JSON where nothing is asked", to("test", [1]), { kind: "to", state: "test", input: [1] }],
  [
    "to with an input that is checked asynchronously",
    to("slow", { id: "known" }),
    { kind: "to", state: "slow", input: { id: "known" } },
  ],
  [
    "to with an input that its schema turns into another",
    to("measured", { text: "four" }),
    { kind: "to", state: "measured", input: { length: 4 } },
  ],
  [
    "to with a patch",
    to("test", 1, { context: { seen: true } }),
    { kind: "to", state: "test", input: 1, context: { seen: true } },
  ],
  [
    "a fan-out",
    fanOut(["test", to("review", { focus: "x" })], { join: "lint", input: 7 }),
    {
      kind: "fanOut",
      siblings: [
        { state: "test", input: null },
        { state: "review", input: { focus: "x" } },
      ],
      join: "lint",
      input: 7,
      onFailure: "cancel",
    },
  ],
  [
    "a fan-out of one that settles",
    fanOut(["test"], { join: "lint", onFailure: "settle" }),
    { kind: "fanOut", siblings: [{ state: "test", input: null }], join: "lint", input: null, onFailure: "settle" },
  ],
  [
    "a fan-out that joins where it began",
    fanOut(["test", "lint"], { join: "plan" }),
    expect.objectContaining({ kind: "fanOut", join: "plan" }),
  ],
  [
    "a list with a limit of how many run at once",
    forEach("review", [{ focus: "x" }], { join: "lint", key: ({ focus }) => focus, maxParallel: 2 }),
    {
      kind: "fanOut",
      siblings: [{ state: "review", key: "x", input: { focus: "x" } }],
      join: "lint",
      input: null,
      onFailure: "cancel",
      list: "review",
      maxParallel: 2,
    },
  ],
  ["done", done({ a: [1] }), { kind: "done", output: { a: [1] } }],
  ["done without output", done(undefined), { kind: "done", output: null }],
  ["fail", fail("broken"), { kind: "fail", reason: "broken" }],
  ["cancel", cancel("not needed"), { kind: "cancel", reason: "not needed" }],
  ["an empty list of stages", { stages: [], execution: "sequential" }, { kind: "done", output: { own: "output" } }],
  [
    "an empty parallel list",
    { stages: [], execution: "parallel", join: "lint" },
    { kind: "done", output: { own: "output" } },
  ],
  ["one sequential stage", { stages: ["test"], execution: "sequential" }, { kind: "to", state: "test", input: null }],
  [
    "two parallel stages",
    { stages: ["test", "plan"], execution: "parallel", join: "lint" },
    {
      kind: "fanOut",
      siblings: [
        { state: "test", input: null },
        { state: "plan", input: null },
      ],
      join: "lint",
      input: null,
      onFailure: "cancel",
    },
  ],
])("%s is a choice", async (_name, value, wanted) => {
  expect(await read(value)).toEqual(wanted);
});

test.each<readonly [string, unknown, string]>([
  ["nothing", undefined, "undefined is not a choice"],
  ["null", null, "null is not a choice"],
  ["a name", "review", '"review" is a name, not a choice; write to("review")'],
  ["a list", ["test"], "is not a choice"],
  ["a number", 3, "number is not a choice"],
  ["a promise", Promise.resolve(done(1)), "a promise is not a choice"],
  ["an object of another kind", { kind: "fanout" }, 'did you mean "fanOut"?'],
  [
    "a choice with a misspelt field",
    { kind: "to", state: "test", inputs: 1 },
    'a choice has no "inputs"; did you mean "input"?',
  ],
  ["an unknown state", to("tset"), 'there is no state "tset"; did you mean "test"?'],
  ["a name every object has", to("constructor"), 'there is no state "constructor"'],
  ["a state that is no name", { kind: "to", state: 3 }, "names no state"],
  [
    "no input where an object is wanted, if only an empty one",
    to("open"),
    "the input of open does not fit its inputSchema: $",
  ],
  ["an input that is missing", to("review"), "the input of review does not fit its inputSchema: $"],
  [
    "an input that does not fit",
    to("review", { focus: 3 }),
    "the input of review does not fit its inputSchema: $.focus must be string",
  ],
  ["an input that turns out wrong", to("slow", { id: "other" }), "$.id is not known"],
  ["an input that is not JSON", to("test", { at: new Date() }), "the input of test is not JSON: $.at"],
  ["a patch with a key of ours", { kind: "to", state: "test", context: { _x: 1 } }, 'the context cannot hold "_x"'],
  [
    "a patch with __proto__",
    to("test", 1, { context: JSON.parse('{"__proto__": {}}') }),
    'the context cannot hold "__proto__"',
  ],
  [
    "a patch with constructor",
    { kind: "to", state: "test", context: { constructor: 1 } },
    'the context cannot hold "constructor"',
  ],
  ["a patch that is no object", { kind: "to", state: "test", context: [1] }, "the context must be an object"],
  ["a fan-out of none", fanOut([], { join: "lint" }), "needs at least one sibling"],
  ["a fan-out without a join", { kind: "fanOut", siblings: ["test"] }, "the join names no state"],
  ["an unknown join", fanOut(["test"], { join: "lnt" }), 'the join: there is no state "lnt"; did you mean "lint"?'],
  ["an unknown sibling", fanOut(["tst"], { join: "lint" }), 'a sibling: there is no state "tst"; did you mean "test"?'],
  ["a sibling twice", fanOut(["test", to("test", 1)], { join: "lint" }), "test is a sibling twice"],
  ["a join that is a sibling", fanOut(["test", "lint"], { join: "lint" }), "the join lint is also a sibling"],
  [
    "a sibling with a patch",
    fanOut([to("test", 1, { context: { a: 1 } })], { join: "lint" }),
    "a sibling cannot change the context",
  ],
  [
    "a sibling that is an end",
    { kind: "fanOut", siblings: [done(1)], join: "lint" },
    'a sibling must be a name or to("name", input)',
  ],
  [
    "a list with an item that does not fit",
    forEach("review", [{ focus: "x" }, {}], { join: "lint", key: (_item, index) => `k${index}` }),
    'the input of review for item "k1" does not fit its inputSchema: $',
  ],
  ["a sibling whose input does not fit", fanOut(["review"], { join: "lint" }), "the input of review does not fit"],
  ["a join whose input does not fit", fanOut(["test"], { join: "review" }), "the input of review does not fit"],
  [
    "an unknown onFailure",
    { kind: "fanOut", siblings: ["test"], join: "lint", onFailure: "ignore" },
    'onFailure must be "cancel" or "settle"',
  ],
  ["an output that is not JSON", done(new Map()), "the output is not JSON"],
  ["a failure without a reason", fail(""), "fail() needs a reason"],
  [
    "several sequential stages",
    { stages: ["test", "lint"], execution: "sequential" },
    "one stage can be next, not 2; let test route to lint",
  ],
  [
    "one parallel stage",
    { stages: ["test"], execution: "parallel", join: "lint" },
    "parallel needs two or more stages",
  ],
  ["parallel stages without a join", { stages: ["test", "plan"], execution: "parallel" }, "the join names no state"],
  [
    "a join for one stage",
    { stages: ["test"], execution: "sequential", join: "lint" },
    "a join belongs to parallel stages",
  ],
  ["a list without an execution", { stages: ["test"] }, 'execution must be "sequential" or "parallel"'],
  ["a list with something else", { stages: [to("test")], execution: "sequential" }, "stages must be a list of names"],
  ["a list with an unknown field", { stages: [], execution: "sequential", after: 1 }, 'a choice has no "after"'],
])("%s is no choice, and says why", async (_name, value, reason) => {
  expect(await read(value)).toContain(reason);
});

test("a choice shares nothing with what the route returned", async () => {
  const input = { list: [1] };
  const patch = { seen: [1] };
  const reading = await resolveChoice(to("test", input, { context: patch }), spec, null);
  input.list.push(2);
  patch.seen.push(2);
  expect(reading).toEqual({
    ok: true,
    choice: { kind: "to", state: "test", input: { list: [1] }, context: { seen: [1] } },
  });
});

const paired = stage({
  inputSchema: z.object({ a: z.string(), b: z.number() }),
  prompt: "x",
  completionTool: "submit",
  completionSchema: z.object({}),
  turnCap: 1,
});

test("an input that does not fit in two places is refused with both", async () => {
  const stages = { plan: plainStage, paired };
  const two = pipeline({ id: "p", input: z.object({}), stages, initial: "plan", next: { plan: () => done(1) } });
  const reading = await resolveChoice(to("paired", { a: 1, b: "x" }), two.spec, null);
  expect(reading).toEqual({ ok: false, reason: expect.stringMatching(/\$\.a [^;]+; \$\.b [^;]+$/) });
});

test("a check that breaks down is no choice that does not fit: the fault continues to the caller", async () => {
  const review = spec.states.get("review");
  const inputSchema = review?.inputSchema;
  if (review === undefined || inputSchema === undefined) throw new Error("review has an inputSchema");
  const check = () => Promise.reject(new Error("out of memory"));
  const states = new Map([...spec.states, ["review", { ...review, inputSchema: { ...inputSchema, check } }] as const]);
  await expect(resolveChoice(to("review", { focus: "x" }), { ...spec, states }, null)).rejects.toThrow("out of memory");
});
