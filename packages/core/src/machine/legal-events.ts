import { branchText, childrenText, parseChoice, shapeText, simpleText } from "../definition/choice.ts";
import { isRowOf } from "../definition/graph.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { ResolvedChoice, ResolvedSibling } from "./resolve-choice.ts";

/** An event that a state may send, with the target of each of its rows. JSON, because a model reads it. */
export type LegalEvent = {
  /** `*`: any event that no other row of the state names. */
  readonly event: string;
  /** In the order of the rows; the first whose condition holds decides. */
  readonly targets: readonly LegalTarget[];
};
export type LegalTarget = {
  /** A state, or a description of several. */
  readonly to: string;
  /** The condition in words; absent if there is none. */
  readonly when?: string;
  /** Whether a person has to approve the transition. */
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

function childText(sibling: ResolvedSibling): string {
  if (sibling.kind === "invoke") return `pipeline ${sibling.pipeline}`;
  return sibling.kind === "branch" ? branchText(sibling.key, sibling.state, sibling.terminal) : sibling.state;
}
