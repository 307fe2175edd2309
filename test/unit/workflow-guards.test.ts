import type { Json, JsonObject } from "@sluice/core";
import { allOf, type GuardOperator, operatorGuard } from "@sluice/workflows";
import { expect, test } from "vitest";
import { CONTEXT, completed } from "../support/definition.ts";

const RESULT = completed({ event: "GO", data: {} });

async function fires(op: GuardOperator, field: Json | undefined, value?: Json): Promise<boolean> {
  const context: JsonObject = field === undefined ? {} : { field };
  const guard = operatorGuard("g", { field: "field", op, ...(value === undefined ? {} : { value }) });
  const verdict = await guard.evaluate({ result: RESULT, ctx: { ...CONTEXT, context } });
  return verdict.fires;
}

const cases: readonly (readonly [
  op: GuardOperator,
  field: Json | undefined,
  value: Json | undefined,
  fires: boolean,
])[] = [
  ["eq", "pass", "pass", true],
  ["eq", "pass", "fail", false],
  ["eq", 1, 1.0, true],
  ["eq", 1, "1", false],
  ["eq", { a: [1, { b: 2 }], c: null }, { c: null, a: [1, { b: 2 }] }, true],
  ["eq", [1, 2], [2, 1], false],
  ["eq", null, null, true],
  ["eq", undefined, null, true],
  ["eq", "x", null, false],
  ["eq", undefined, "x", false],
  ["eq", null, "x", false],
  ["neq", "pass", "fail", true],
  ["neq", "pass", "pass", false],
  ["neq", undefined, "fail", false],
  ["neq", null, "fail", false],
  ["neq", "x", null, true],
  ["neq", null, null, false],
  ["neq", undefined, null, false],
  ["gt", 81, 80, true],
  ["gt", 80, 80, false],
  ["gt", "81", 80, false],
  ["gt", undefined, 80, false],
  ["gte", 80, 80, true],
  ["gte", 79.5, 80, false],
  ["gte", null, 0, false],
  ["lt", 4, 5, true],
  ["lt", 5, 5, false],
  ["lt", "4", 5, false],
  ["lt", false, 5, false],
  ["lte", 0, 0, true],
  ["lte", 1, 0, false],
  ["lte", null, 0, false],
  ["in", "prod", ["staging", "prod"], true],
  ["in", "dev", ["staging", "prod"], false],
  ["in", 1, [1.0], true],
  ["in", null, [null], false],
  ["in", "prod", "production", false],
  ["contains", "all tests approved", "approved", true],
  ["contains", ["draft", "approved"], "approved", true],
  ["contains", ["approved by x"], "approved", false],
  ["contains", [{ id: 1 }], { id: 1 }, true],
  ["contains", "1 2 3", 2, false],
  ["contains", { approved: true }, "approved", false],
  ["contains", undefined, "approved", false],
  ["exists", 0, undefined, true],
  ["exists", "", undefined, true],
  ["exists", false, undefined, true],
  ["exists", null, undefined, false],
  ["exists", undefined, undefined, false],
  ["not_exists", undefined, undefined, true],
  ["not_exists", null, undefined, true],
  ["not_exists", 0, undefined, false],
];

for (const [op, field, value, expected] of cases) {
  const words = `${JSON.stringify(field) ?? "a missing field"} ${op} ${JSON.stringify(value) ?? ""}`;
  test(`${words} is ${expected}`, async () => expect(await fires(op, field, value)).toBe(expected));
}

test("a field is a dotted path of own members", async () => {
  const context = { review: { score: 9, notes: [{ done: true }] } };
  const at = async (field: string, value: Json): Promise<boolean> => {
    const guard = operatorGuard("g", { field, op: "eq", value });
    return (await guard.evaluate({ result: RESULT, ctx: { ...CONTEXT, context } })).fires;
  };
  expect(await at("review.score", 9)).toBe(true);
  expect(await at("review.notes.0.done", true)).toBe(true);
  expect(await at("review.missing.score", 9)).toBe(false);
  const present = operatorGuard("g", { field: "review.constructor.name", op: "exists" });
  expect((await present.evaluate({ result: RESULT, ctx: { ...CONTEXT, context } })).fires).toBe(false);
  const length = operatorGuard("g", { field: "review.notes.length", op: "exists" });
  expect((await length.evaluate({ result: RESULT, ctx: { ...CONTEXT, context } })).fires).toBe(false);
});

test("a guard says in words what it needs and what it found", async () => {
  const guard = operatorGuard("tests_passed", { field: "test_result", op: "eq", value: "pass" });
  expect(guard.text).toBe('tests_passed (test_result equals "pass")');
  const verdict = await guard.evaluate({ result: RESULT, ctx: { ...CONTEXT, context: { test_result: "fail" } } });
  expect(verdict.why).toBe('tests_passed does not hold: test_result is "fail", needed: test_result equals "pass"');
});

test("of several guards, the first that does not hold gives the reason", async () => {
  const order: string[] = [];
  const guard = (name: string, holds: boolean) => ({
    text: name,
    evaluate: async () => {
      order.push(name);
      return { fires: holds, why: `${name} is ${holds}` };
    },
  });
  const all = allOf([guard("a", true), guard("b", false), guard("c", false)]);
  expect(await all.evaluate({ result: RESULT, ctx: CONTEXT })).toEqual({ fires: false, why: "b is false" });
  expect(order).toEqual(["a", "b"]);
  expect(all.text).toBe("a and b and c");
  expect((await allOf([guard("a", true), guard("b", true)]).evaluate({ result: RESULT, ctx: CONTEXT })).fires).toBe(
    true,
  );
});
