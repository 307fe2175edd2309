// The decisions of a run as lines of text, each with the rows that it considered.

import { clean, headOf, revealed, spanOf } from "../text/clean.ts";
import { columns } from "../text/columns.ts";
import type { Line } from "../text/line.ts";
import type { DecidedRow } from "./decision-table.ts";
import { executionName } from "./describe-event.ts";
import type { ConsideredTarget } from "./fields.ts";
import { hopTarget, LONGEST_NAME, type RouteView } from "./routes.ts";
import { count } from "./words.ts";

/** UTF-16 units of a condition or a reason. */
const LONGEST_TEXT = 300;
/** Rows of one decision. */
const MOST_ROWS = 40;

/** A decision in words: `by READY to working`. Untrusted text. */
function headWords({ outcome, hop, event, approved, named }: RouteView): string {
  if (named !== undefined) return `chose ${headOf(named, LONGEST_NAME) || "nothing"}, which was refused`;
  const by = event === "" ? "" : `by ${headOf(event, LONGEST_NAME)} `;
  if (hop === undefined) return `${by}${outcome === "stayed" ? "stays" : "has a route that cannot be followed"}`;
  const isEnd = hop.choice === "done" || hop.choice === "fail" || hop.choice === "cancel";
  return `${by}${isEnd || hop.choice === "return" ? "" : "to "}${hopTarget(hop)}${approved ? ", approved" : ""}`;
}

/**
 * Every decision about a route, oldest first: from where, by which event, to where and why, and the rows that it considered with
 * their conditions, whether each fired, and why not. Longer lines have to be wrapped or cut.
 */
export function routeLines({ routes }: { readonly routes: readonly RouteView[] }): readonly Line[] {
  return routes.flatMap((route, index): readonly Line[] => {
    const { runId, executionId, outcome, by, why, rationale, rows, considered } = route;
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
      ...targetLines(considered),
    ];
  });
}

const TARGET_SIGNS = {
  chosen: { text: "✔", style: "good" },
  refused: { text: "✖", style: "bad" },
  "not chosen": { text: "○", style: "dim" },
} as const;

function targetLines(considered: readonly ConsideredTarget[]): readonly Line[] {
  const shown = considered.slice(0, MOST_ROWS);
  const left = considered.length - shown.length;
  const cells = shown.map(({ to, verdict }): readonly Line[] => [
    [{ text: "  " }, TARGET_SIGNS[verdict], { text: ` ${verdict}`, style: TARGET_SIGNS[verdict].style }],
    revealed(headOf(to, LONGEST_NAME)),
  ]);
  const lines = columns(cells).flatMap((line, index) => {
    const why = shown[index]?.why ?? "";
    return why === "" ? [line] : [line, revealed(`    ${headOf(why, LONGEST_TEXT)}`, "dim")];
  });
  const more: readonly Line[] = left > 0 ? [[{ text: `  … ${count(left, "more target")}`, style: "dim" }]] : [];
  return [...lines, ...more];
}

const SIGNS = {
  fired: { text: "✔", style: "good" },
  "did not fire": { text: "✖", style: "bad" },
  "not asked": { text: "○", style: "dim" },
} as const;

function rowLines(rows: readonly DecidedRow[]): readonly Line[] {
  const shown = rows.slice(0, MOST_ROWS);
  const left = rows.length - shown.length;
  const cells = shown.map(({ row, label, when, to = "", approval, verdict }): readonly Line[] => [
    [{ text: "  " }, SIGNS[verdict], { text: ` ${verdict}`, style: SIGNS[verdict].style }],
    [spanOf(headOf(label ?? `row ${row}`, LONGEST_NAME))],
    when === undefined ? [{ text: "no condition", style: "dim" }] : revealed(when, "code", LONGEST_TEXT),
    [spanOf(`-> ${headOf(to, LONGEST_TEXT)}${approval ? ", after an approval" : ""}`)],
  ]);
  const lines = columns(cells).flatMap((line, index) => [line, ...whyLines(shown[index])]);
  const more: readonly Line[] = left > 0 ? [[{ text: `  … ${count(left, "more row")}`, style: "dim" }]] : [];
  return [...lines, ...more];
}

/** Why a row did not fire, or what a person answered. The line of the row shows the rest. */
function whyLines(row: DecidedRow | undefined): readonly Line[] {
  if (row === undefined || row.why === "" || row.verdict === "not asked") return [];
  if (row.verdict === "fired" && !row.approval) return [];
  return [revealed(`    ${headOf(row.why, LONGEST_TEXT)}`, "dim")];
}
