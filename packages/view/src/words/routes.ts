// The decisions of a run about its routes, and where they lead in words.
import { headOf } from "../text/clean.ts";
import type { DecidedRow } from "./decision-table.ts";
import type { ConsideredTarget } from "./fields.ts";
import { count } from "./words.ts";

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

/** UTF-16 units of a name, and of all names of one route. */
export const LONGEST_NAME = 100;
const LONGEST_NAMES = 1_000;
/** States of one route. */
const MOST_STATES = 80;

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
