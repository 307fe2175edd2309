import { expect, test } from "vitest";
import { createMetrics } from "../../packages/cli/src/commands/serve/metrics.ts";
import { codesIn, readPage, tableOf } from "./pages.ts";
import { readSources } from "./sources.ts";

const page = readPage("docs/serve.md");
const firstCodes = (marker: string): readonly string[] => {
  const [, after = ""] = page.text.split(`<!-- compared by a test with ${marker} -->`);
  return tableOf(after.split("\n## ", 1)[0] ?? "").map(([cell = ""]) => codesIn(cell)[0] ?? cell);
};

test("docs/serve.md lists the metrics of a worker", () => {
  const counts = {
    completed: 0,
    failed: 0,
    cancelled: 0,
    running: 0,
    sleeping: 0,
    suspended: 0,
    due: 0,
    openRequests: 0,
  };
  const text = createMetrics(0).text({ counts, active: 0, heldBack: 0, draining: false });
  const names = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name);
  expect(firstCodes("the metrics of a worker")).toEqual(names);
  expect(names.length).toBeGreaterThan(10);
});

test("docs/serve.md lists the lines of a worker", () => {
  const [action] = readSources("packages/cli/src/commands/serve/action.ts");
  const [waker] = readSources("packages/cli/src/waking/waker.ts");
  const own = [...(action?.text ?? "").matchAll(/log\.event\("(\w+)"/g)].map(([, type = ""]) => type);
  const [, union = ""] = /export type Woken =([\s\S]*?);\n\n/.exec(waker?.text ?? "") ?? [];
  const outcomes = [...union.matchAll(/kind: "(\w+)"/g)].map(([, kind = ""]) => kind);
  expect(outcomes).toContain("elsewhere");
  const printed = [...own, ...outcomes.filter((kind) => kind !== "elsewhere")];
  expect(firstCodes("what a worker can print").toSorted()).toEqual(printed.toSorted());
});
