import { expect, test } from "vitest";
import { Overlay } from "../../packages/tui/src/app/overlay/overlay.ts";
import { endBelow } from "../../packages/tui/src/run/end-rows.ts";
import { TranscriptWindow } from "../../packages/tui/src/run/transcript-window.ts";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import type { RunView, TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import { ctrl, key } from "../support/desk.ts";
import { execution, runView } from "../support/random-views.ts";
import { textOf } from "../support/run-views.ts";

const [first, last] = [execution("plan", { key: "r1:plan#1" }), execution("review", { key: "r1:review#1" })];

function rowsOf(view: RunView, at = -1): string {
  const shown = view.executions.at(at);
  if (shown === undefined) return "";
  const rows = new TranscriptWindow();
  rows.update(shown, endBelow(view, shown.key));
  return textOf(rows.slice(0, rows.count(80), 80));
}

test("below the last stage stands what its run came to, and below no other", () => {
  const view = runView({ executions: [first, last], status: "completed", output: { verdict: "approve" } });
  expect(rowsOf(view)).toContain('✔ run completed\n  {\n    "verdict": "approve"\n  }');
  expect(rowsOf(view, 0)).not.toContain("run completed");
  expect(rowsOf(runView({ executions: [first, last] }))).not.toContain("run ");
});

test("a run that failed says why below its last stage, once it has failed", () => {
  const rows = new TranscriptWindow();
  rows.update(first, endBelow(runView({ executions: [first] }), first.key));
  expect(rows.count(80)).toBe(0);
  const error = { code: "turn_cap", message: "20 turns were not enough" };
  rows.update(first, endBelow(runView({ executions: [first], status: "failed", error }), first.key));
  expect(textOf(rows.slice(0, 9, 80))).toContain("✖ run failed\n  20 turns were not enough (turn_cap)");
});

test.each([
  ["model", "plan failed (model): nobody answers", "plan failed (model): nobody answers"],
  ["cancelled", "cancelled by root", "cancelled by root"],
  ["budget", "12 dollars are spent", "12 dollars are spent (budget)"],
])("the code %s is shown once", (code, message, shown) => {
  const rows = rowsOf(runView({ executions: [last], status: "failed", error: { code, message } }));
  expect(rows).toBe(`\n✖ run failed\n  ${shown}`);
});

test("a long result is there whole, and what is too long says what has the rest", () => {
  const lines = Array.from({ length: 300 }, (_, at) => `line ${at}`).join("\n");
  const rows = rowsOf(runView({ executions: [last], status: "completed", output: lines }));
  expect(rows).toContain("line 0\n");
  expect(rows).toContain("line 150\n");
  expect(rows).not.toContain(" more (");
  const endless = runView({ executions: [last], status: "completed", output: `${"x".repeat(70)}\n`.repeat(1_000) });
  expect(rowsOf(endless)).toMatch(/… 51000 characters more \(sluice show has all of it\)$/);
});

test("a transcript is laid out once, also if another one is opened between", () => {
  let read = 0;
  const said: TranscriptItem = {
    kind: "text",
    runId: "r1",
    executionId: "plan#1",
    attempt: 1,
    turn: 1,
    get text() {
      read += 1;
      return "said";
    },
  };
  const items = new ListBuilder<TranscriptItem>();
  items.push(said);
  items.settle(() => true);
  const view = runView({ executions: [{ ...first, items: items.view() }, last] });
  const overlay = new Overlay(() => view);
  const shown = (): string => {
    const rows = overlay.viewer?.rows;
    return textOf(rows?.slice(0, rows.count(80), 80) ?? []);
  };
  overlay.read(first.key);
  expect(shown()).toBe("\n  said");
  expect(read).toBe(1);
  overlay.key(key("right"));
  expect(shown()).toBe("");
  overlay.key(key("left"));
  expect(shown()).toBe("\n  said");
  expect(read).toBe(1);
  overlay.key(ctrl("o"));
  overlay.key(key("right"));
  expect(overlay.viewer?.hint).toBe("Ctrl+O folds all");
});
