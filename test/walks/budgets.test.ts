import { expect, test } from "vitest";
import { BUDGETS } from "./budgets.ts";
import { budgeted, type Measured, measure, WALKS, type WalkName } from "./measure.ts";
import { figuresOf } from "./share.ts";

const measurements = new Map<WalkName, Promise<Measured>>();
/** Each walk is measured once for its tests. */
function measuredOnce(name: WalkName): Promise<Measured> {
  const found = measurements.get(name) ?? measure(name);
  measurements.set(name, found);
  return found;
}

const limited = WALKS.filter((name) => Object.hasOwn(BUDGETS, name));

test.each(limited)("the walk %s takes no more source files than its budget", async (name) => {
  const measured = await measuredOnce(name);
  expect(budgeted(measured)).toBeGreaterThan(0);
  expect(budgeted(measured), `npm run walks -- --list ${name}`).toBeLessThanOrEqual(measured.budget?.atMost ?? 0);
});

test.each(limited)("the walk %s makes no more calls than its budget", async (name) => {
  const { share, budget } = await measuredOnce(name);
  if (budget?.calls === undefined || share === undefined) return;
  const { calls } = figuresOf(share.more);
  expect(calls).toBeGreaterThan(0);
  expect(calls, `npm run walks -- --list ${name}`).toBeLessThanOrEqual(budget.calls);
});

test("two measurements of a walk have the same figures", async () => {
  expect(await measure("resume")).toEqual(await measuredOnce("resume"));
});
