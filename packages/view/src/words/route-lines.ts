// The decisions of a run as lines of text, each with the rows that it considered.
import { clean, headOf, revealed, spanOf } from "../text/clean.ts";
import type { Line } from "../text/line.ts";
import type { ConsideredTarget, DecidedRow } from "./decision-table.ts";
import { executionName } from "./describe-event.ts";
import { columns, count } from "./words.ts";

/** A child of a fan-out that is more than one state. */
export type ForkChild =
  /** A branch from `state` to `terminal`. */
  | { readonly kind: "branch"; readonly key: string; readonly state: string; readonly terminal: string }
  /** Another pipeline. */
  | { readonly kind: "pipeline"; readonly key: string; readonly pipeline: string };

/** A transition that the run made. */
export interface Hop {
  readonly runId: string;
  readonly from: string;
  /** `interrupt` leads to the state that handles a changed file, `return` from there to the state that waits. */
  readonly choice: "to" | "fanOut" | "done" | "fail" | "cancel" | "return" | "interrupt";
  /** States; of invoked pipelines, nothing. */
  readonly to: readonly string[];
  readonly join?: string;
  /** The event that led to it, or the interrupt. */
  readonly event?: string;
  /** The branches of a fork, or the pipelines that run. */
  readonly children?: readonly ForkChild[];
  /** Of a fork: the first branch that completes is enough. */
  readonly any?: true;
  /** The length of a list whose items run in parallel. */
  readonly items?: number;
}

/** A decision about a route. */
export interface RouteView {
  readonly runId: string;
  readonly executionId: string;
  readonly at: number;
  /** `stayed`: the event was refused, and the state continued. `rejected`: the route cannot be followed. */
  readonly outcome: "moved" | "stayed" | "rejected";
  /** Absent unless it moved. */
  readonly hop?: Hop;
  /** The state that was left or asked to move. */
  readonly from: string;
  /** The event that the state sent; empty for a result. */
  readonly event: string;
  /** Why the state sent the event, in its own words. */
  readonly rationale: string;
  /** Whether a person approved it. */
  readonly approved: boolean;
  readonly by: string;
  readonly why: string;
  /** The rows that it considered. */
  readonly rows: readonly DecidedRow[];
  /** The targets that a model had, and what it named and was refused; none unless it named the state that follows. */
  readonly considered: readonly ConsideredTarget[];
  /** What the state named, if that was refused and it could choose again. */
  readonly named?: string;
}

/** The branches or pipelines of a fan-out in words: `tests (unit to tested) and style (lint to styled)`. Untrusted text. */
export function childrenText({ children = [], any }: Pick<Hop, "children" | "any">): string {
  const texts = children.map((child) =>
    child.kind === "branch" ? `${child.key} (${child.state} to ${child.terminal})` : `pipeline ${child.pipeline}`,
  );
  return texts.join(any === true ? " or " : " and ");
}

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
