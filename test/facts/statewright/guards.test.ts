import type { Json, JsonObject } from "@sluice/core";
import type { GuardOperator } from "@sluice/workflows";
import { expect } from "vitest";
import { documentOf, fact, machineOf, ours } from "../../support/statewright.ts";

// The operators of guards, asked through an event of a document.

/** Whether an event moves the machine if its guard compares `field` of this context with the value. */
async function holds(op: GuardOperator, context: JsonObject, value?: Json): Promise<boolean> {
  const guard = { field: "field", op, ...(value === undefined ? {} : { value }) };
  const on = { GO: { target: "done", guard: "it" }, SET: "a", FAIL: "failed" };
  const walk = await machineOf(documentOf({ a: { allowed_tools: [], on } }, { guards: { it: guard } }));
  await walk.send("SET", context);
  return (await walk.send("GO")).effect.kind === "end";
}
type Case = readonly [op: GuardOperator, field: Json | undefined, value: Json | undefined, expected: boolean];
async function check(...cases: readonly Case[]): Promise<void> {
  for (const [op, field, value, expected] of cases) {
    const found = await holds(op, field === undefined ? {} : { field }, value);
    expect(found, `${JSON.stringify(field)} ${op} ${JSON.stringify(value)}`).toBe(expected);
  }
}

fact(38, "the basic operators compare as they are called", async () => {
  await check(
    ["eq", "pass", "pass", true],
    ["eq", "fail", "pass", false],
    ["neq", "fail", "pass", true],
    ["neq", "pass", "pass", false],
    ["gt", 81, 80, true],
    ["gte", 80, 80, true],
    ["lt", 4, 5, true],
    ["lte", 5, 5, true],
    ["lte", 6, 5, false],
    ["exists", "x", undefined, true],
    ["not_exists", undefined, undefined, true],
    ["not_exists", "x", undefined, false],
  );
});

fact(39, "gt of equal numbers is false", async () => await check(["gt", 80, 80, false], ["lt", 80, 80, false]));

fact(40, "exists is false for null and for a missing field", async () => {
  await check(
    ["exists", null, undefined, false],
    ["exists", undefined, undefined, false],
    ["not_exists", null, undefined, true],
  );
});

fact(41, "in looks for the field in a list", async () => {
  await check(["in", "prod", ["staging", "prod"], true], ["in", "dev", ["staging", "prod"], false]);
});

fact(42, "contains looks for a part of a text", async () => {
  await check(["contains", "all approved", "approved", true], ["contains", "all", "approved", false]);
});

fact(43, "a comparison with a missing field is false", async () => {
  await check(
    ["eq", undefined, "x", false],
    ["gt", undefined, 0, false],
    ["lte", undefined, 0, false],
    ["in", undefined, ["x"], false],
    ["contains", undefined, "x", false],
  );
});

ours(
  44,
  "neq with a missing field is false as well, and only a comparison with null sees what is missing",
  async () => {
    await check(
      ["neq", undefined, "fail", false],
      ["neq", null, "fail", false],
      ["eq", undefined, null, true],
      ["neq", undefined, null, false],
      ["neq", "x", null, true],
    );
  },
);

fact(45, "an operator for numbers is false for a text and for null", async () => {
  await check(["gte", "80", 80, false], ["lt", "4", 5, false], ["gt", null, -1, false]);
});

ours(46, "contains also finds an element of a list", async () => {
  await check(
    ["contains", ["draft", "approved"], "approved", true],
    ["contains", ["approved by x"], "approved", false],
  );
});
