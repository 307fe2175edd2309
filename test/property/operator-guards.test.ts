import type { JsonObject, StageContext } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { allOf, operatorGuard } from "../../packages/workflows/src/expressions/guard.ts";
import { holds, type OperatorNode, randomContext, randomOperator } from "../support/reference-guards.ts";

/** What a guard reads of a run. */
function scopeOf(context: JsonObject): Parameters<ReturnType<typeof operatorGuard>["evaluate"]>[0] {
  const ctx: StageContext = {
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
  const result = { executionId: "s#1", attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  return { ctx, result: { ...result, status: "skipped" } };
}
const guardOf = ({ field, op, value }: OperatorNode): ReturnType<typeof operatorGuard> =>
  operatorGuard("named", { field, op, ...(value === undefined ? {} : { value }) });

test("an operator guard fires exactly when its documentation says", async () => {
  const fired = { true: 0, false: 0 };
  await fc.assert(
    fc.asyncProperty(randomOperator, randomContext, async (node, context) => {
      const { fires } = await guardOf(node).evaluate(scopeOf(context));
      expect(fires).toBe(holds(node, context));
      fired[fires ? "true" : "false"] += 1;
    }),
    { numRuns: 20_000 },
  );
  expect(Math.min(...Object.values(fired))).toBeGreaterThan(500);
});

test("several guards fire together exactly when each of them does", async () => {
  const nodes = fc.array(randomOperator, { maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(nodes, randomContext, async (all, context) => {
      const { fires } = await allOf(all.map(guardOf)).evaluate(scopeOf(context));
      expect(fires).toBe(all.every((node) => holds(node, context)));
    }),
    { numRuns: 5_000 },
  );
});
