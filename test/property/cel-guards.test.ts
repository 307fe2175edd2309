import type { GuardScope, JsonObject } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { celGuard } from "../../packages/workflows/src/expressions/cel-guard.ts";
import { isTrue, randomCondition, randomFields, written } from "../support/reference-expressions.ts";

/** What a guard reads of a run. */
function scopeOf(context: JsonObject): GuardScope {
  const ctx = {
    runId: "run",
    workspace: "/",
    task: "",
    run: { input: null },
    input: null,
    upstream: {},
    context,
    setup: null,
    attempt: 1,
    visit: 1,
  };
  const base = { executionId: "s#1", attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  return { ctx, result: { ...base, status: "skipped" } };
}

test("a condition in CEL fires exactly when it is true, and a fault in it is no match", async () => {
  const fired = { yes: 0, no: 0 };
  await fc.assert(
    fc.asyncProperty(randomCondition, randomFields, async (condition, context) => {
      const made = celGuard(written(condition));
      if (made.guard === undefined) throw new Error(`${written(condition)} is refused: ${JSON.stringify(made)}`);
      const { fires } = await made.guard.evaluate(scopeOf(context));
      expect({ condition: written(condition), fires }).toEqual({
        condition: written(condition),
        fires: isTrue(condition, { context }),
      });
      fired[fires ? "yes" : "no"] += 1;
    }),
    { numRuns: 5_000 },
  );
  expect(Math.min(fired.yes, fired.no)).toBeGreaterThan(500);
});
