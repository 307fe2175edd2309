// The decisions of a run as lines of text, each with the rows that it looked at.
import { clean, headOf, revealed, spanOf } from "../../text/clean.ts";
import type { Line } from "../../text/line.ts";
import type { DecidedRow } from "../../words/decision-table.ts";
import { executionName } from "../../words/describe-event.ts";
import { columns, count } from "../../words/words.ts";
import type { Hop, RouteView, RunView } from "../run-view.ts";
import { childrenText } from "./pipeline-view.ts";

/** UTF-16 units of a name, of all names of one route, and of a condition or a reason. */
const LONGEST_NAME = 100;
const LONGEST_NAMES = 1_000;
const LONGEST_TEXT = 300;
/** States of one route, and rows of one decision. */
const MOST_STATES = 80;
const MOST_ROWS = 40;

const ENDS = { done: "run completed", fail: "run failed", cancel: "run cancelled" } as const;

/** Where a route leads, in words. Untrusted text. */
export function hopTarget(hop: Hop): string {
  const { choice, to, join = "?", items } = hop;
  const names = to.slice(0, MOST_STATES).map((name) => headOf(name, LONGEST_NAME));
  switch (choice) {
    case "to":
      return names.join(", ");
    case "interrupt":
      return `${names.join(", ")}, to handle an interrupt`;
    case "return":
      return `back to ${names.join(", ") || "the interrupted state"}`;
    case "fanOut": {
      const then = `then ${headOf(join, LONGEST_NAME)}`;
      if (items !== undefined) return `${names.join(", ")} for ${count(items, "item")}, ${then}`;
      if (hop.children !== undefined) return `${headOf(childrenText(hop), LONGEST_NAMES)}, ${then}`;
      return `${names.join(" ∥ ")} in parallel, ${then}`;
    }
    case "done":
    case "fail":
    case "cancel":
      return ENDS[choice];
  }
}

/** A decision in words: `by READY to working`. Untrusted text. */
function headWords({ outcome, hop, event, approved }: RouteView): string {
  const by = event === "" ? "" : `by ${headOf(event, LONGEST_NAME)} `;
  if (hop === undefined) return `${by}${outcome === "stayed" ? "stays" : "has a route that cannot be followed"}`;
  const isEnd = hop.choice === "done" || hop.choice === "fail" || hop.choice === "cancel";
  return `${by}${isEnd || hop.choice === "return" ? "" : "to "}${hopTarget(hop)}${approved ? ", approved" : ""}`;
}

/**
 * Every decision about a route, oldest first: from where, by which event, to where and why, and the rows that it looked at with
 * their conditions, whether each fired, and why not. Longer lines have to be wrapped or cut.
 */
export function routeLines({ routes }: Pick<RunView, "routes">): readonly Line[] {
  return routes.flatMap((route, index): readonly Line[] => {
    const { runId, executionId, outcome, by, why, rationale, rows } = route;
    const name = headOf(executionName({ runId, executionId }), LONGEST_NAME);
    const reasons = [
      ...(why === "" ? [] : [revealed(`  why: ${headOf(why, LONGEST_TEXT)}`, "dim")]),
      ...(rationale === "" ? [] : [revealed(`  the stage says: ${headOf(rationale, LONGEST_TEXT)}`, "dim")]),
    ];
    return [
      ...(index === 0 ? [] : [[]]),
      [
        spanOf(name, "accent"),
        { text: " " },
        spanOf(headWords(route), outcome === "moved" ? "strong" : "bad"),
        { text: "  " },
        spanOf(clean(by), "dim"),
      ],
      ...reasons,
      ...rowLines(rows),
    ];
  });
}

const SIGNS = {
  fired: { text: "✔", style: "good" },
  "did not fire": { text: "✖", style: "bad" },
  "not asked": { text: "○", style: "dim" },
} as const;

function rowLines(rows: readonly DecidedRow[]): readonly Line[] {
  const shown = rows.slice(0, MOST_ROWS);
  const left = rows.length - shown.length;
  const cells = shown.map(({ row, label, when, to = "", approval, verdict, why }): readonly Line[] => [
    [{ text: "  " }, SIGNS[verdict], { text: " " }, spanOf(headOf(label ?? `row ${row}`, LONGEST_NAME))],
    when === undefined ? [{ text: "no condition", style: "dim" }] : revealed(when, "code", LONGEST_TEXT),
    [spanOf(`-> ${headOf(to, LONGEST_TEXT)}${approval ? ", after an approval" : ""}`)],
    [spanOf(`${verdict}: ${headOf(why, LONGEST_TEXT)}`, "dim")],
  ]);
  const more: readonly Line[] = left > 0 ? [[{ text: `  … ${count(left, "more row")}`, style: "dim" }]] : [];
  return [...columns(cells), ...more];
}
