import { type ChoiceShape, parseChoice } from "../definition/choice.ts";
import { isRowOf } from "../definition/graph.ts";
import type { PipelineSpec, RowSpec } from "../definition/spec.ts";
import type { ResolvedChoice, ResolvedSibling } from "./resolve-choice.ts";

/** An event that a state may send, with where each of its rows leads. JSON, because a model reads it. */
export type LegalEvent = {
  /** `*`: any event that no other one names. */
  readonly event: string;
  /** In the order of the rows; the first whose condition holds decides. */
  readonly targets: readonly LegalTarget[];
};
export type LegalTarget = {
  /** A state, or several in words. */
  readonly to: string;
  /** The condition in words; absent if there is none. */
  readonly when?: string;
  /** Whether a person has to approve the move. */
  readonly approval: boolean;
};

/** The events that a state may send, in the order of the table. Empty for a state that does not complete by events. */
export function legalEvents(spec: PipelineSpec, state: string): readonly LegalEvent[] {
  const { routes } = spec;
  if (routes.kind !== "table" || spec.states.get(state)?.completesByEvents !== true) return [];
  const events = new Map<string, LegalTarget[]>();
  for (const row of routes.rows) {
    const { on, when, to, approval } = row;
    if (typeof on === "string" || !isRowOf(row, state)) continue;
    const reading = parseChoice(to, spec.states, null, spec.limits.maxItems);
    if (!reading.ok) continue;
    const condition = when === undefined ? {} : { when: when.text };
    const target = { to: shapeText(reading.shape), ...condition, approval: approval !== undefined };
    const known = events.get(on.event);
    if (known === undefined) events.set(on.event, [target]);
    else known.push(target);
  }
  return [...events].map(([event, targets]) => ({ event, targets }));
}

/** A row of a table as a run records it, for people who read its decisions. A type, since it is JSON. */
export type RecordedRow = Pick<RowSpec, "from" | "on"> & {
  /** The condition in words; absent if there is none. */
  readonly when?: string;
  /** Where it leads, in words. */
  readonly to: string;
  /** A person has to approve the move. */
  readonly approval?: true;
  readonly label?: string;
};

/** A run records no more rows than these, and no longer texts of one. */
const MOST_ROWS = 200;
const LONGEST_TEXT = 200;

/** The rows of a table by their position: the first 200. Undefined for a pipeline that routes by functions. */
export function recordedRows({ routes, states, limits }: PipelineSpec): readonly RecordedRow[] | undefined {
  if (routes.kind !== "table") return undefined;
  return routes.rows.slice(0, MOST_ROWS).map(({ from, on, when, to, approval, label }): RecordedRow => {
    const reading = parseChoice(to, states, null, limits.maxItems);
    return {
      from,
      on,
      ...(when === undefined ? {} : { when: shortened(when.text) }),
      to: reading.ok ? shortened(shapeText(reading.shape)) : "nowhere",
      ...(approval === undefined ? {} : { approval: true }),
      ...(label === undefined ? {} : { label: shortened(label) }),
    };
  });
}

function shortened(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT).toWellFormed()}…`;
}

/** Where a choice leads, in words. */
export function choiceText(choice: ResolvedChoice): string {
  switch (choice.kind) {
    case "fanOut": {
      const { siblings, join, list, onFailure } = choice;
      const children = list === undefined ? siblings.map(childText) : [`${list} for each of ${siblings.length} items`];
      return childrenText(children, onFailure === "any", join);
    }
    case "stay":
      return "the same state";
    default:
      return simpleText(choice);
  }
}

function shapeText(shape: ChoiceShape): string {
  switch (shape.kind) {
    case "fanOut": {
      const { siblings, list, join } = shape;
      const children =
        list === undefined ? siblings.map(({ state }) => state) : [`${list} for each of ${siblings.length} items`];
      return childrenText(children, false, join);
    }
    case "fork": {
      const branches = shape.branches.map(({ key, initial, terminal }) => branchText(key, initial, terminal));
      return childrenText(branches, shape.join === "any", shape.onComplete);
    }
    case "invoke":
      return childrenText([`pipeline ${shape.pipeline}`], false, shape.onComplete);
    default:
      return simpleText(shape);
  }
}

type Simple =
  | { readonly kind: "to"; readonly state: string }
  | { readonly kind: "return" | "done" }
  | { readonly kind: "fail" | "cancel"; readonly reason: string };

function simpleText(choice: Simple): string {
  switch (choice.kind) {
    case "to":
      return choice.state;
    case "return":
      return "the interrupted state";
    case "done":
      return "the end of the run";
    case "fail":
      return `a failed end: ${choice.reason}`;
    case "cancel":
      return `a cancelled end: ${choice.reason}`;
  }
}

function childText(sibling: ResolvedSibling): string {
  if (sibling.kind === "invoke") return `pipeline ${sibling.pipeline}`;
  return sibling.kind === "branch" ? branchText(sibling.key, sibling.state, sibling.terminal) : sibling.state;
}

function branchText(key: string, initial: string, terminal: string): string {
  return `${key} (${initial} to ${terminal})`;
}

function childrenText(children: readonly string[], isAny: boolean, join: string): string {
  return `${children.join(isAny ? " or " : " and ")}, then ${join}`;
}
