// Every way out of a state, whatever pattern it is written in.

import type { RowTrigger } from "@sluice/core";
import { ANY_EVENT } from "../check/moves.ts";
import type { DocumentPath } from "../diagnostic.ts";
import { type KindState, kindsIn } from "../kinds/fields.ts";
import type { Invocation, Move, Parting, StatewrightState } from "./schema.ts";

/** One transition, with the path of each of its parts in the document. */
export interface Edge {
  /** The event; `*` is any that the state does not name. */
  readonly event: string;
  /** What its row waits for. */
  readonly on: RowTrigger;
  /** Names the edge for people: `DEPLOY`, or `DEPLOY[0]` in a list. */
  readonly label: string;
  readonly path: DocumentPath;
  readonly action: string | Move | Invocation | Parting;
  readonly guards: readonly { readonly name: string; readonly path: DocumentPath }[];
  /** Whether a person has to approve it, and what the person is asked. */
  readonly approval?: { readonly message?: string };
  /** It has an approval message and asks for no approval. */
  readonly unusedMessage: boolean;
  readonly targets: readonly EdgeTarget[];
}

export interface EdgeTarget {
  readonly target: string;
  readonly path: DocumentPath;
  /** Whether it may be `$return`. */
  readonly mayReturn: boolean;
}

/** What a state runs instead of an agent; undefined for a state of an agent, and for a final one. */
export function kindOf(state: StatewrightState): KindState | undefined {
  return state.type === "final" ? undefined : kindsIn(state)[0];
}

/** The edges of a state in the order in which they are tried. Final states have none. */
export function edgesOf(name: string, state: StatewrightState): readonly Edge[] {
  if (state.type === "final") return [];
  const kind = kindOf(state)?.kind;
  const triggerOf = (event: string): RowTrigger =>
    kind !== undefined && (event === "success" || event === "failure") ? event : { event };
  const edges = Object.entries(state.on ?? {}).flatMap(([event, transition]): readonly Edge[] => {
    const path = ["states", name, "on", event];
    if (!Array.isArray(transition)) return [edge({ event, on: triggerOf(event), label: event, path }, transition)];
    return transition.map((entry, index) =>
      edge({ event, on: triggerOf(event), label: `${event}[${index}]`, path: [...path, index] }, entry),
    );
  });
  const { safe_next } = state;
  return safe_next === undefined
    ? edges
    : [
        ...edges,
        edge(
          { event: ANY_EVENT, on: { event: ANY_EVENT }, label: "safe_next", path: ["states", name, "safe_next"] },
          safe_next,
        ),
      ];
}

function edge(place: Pick<Edge, "event" | "on" | "label" | "path">, action: Edge["action"]): Edge {
  const { path } = place;
  const same = { ...place, action };
  if (typeof action === "string")
    return { ...same, guards: [], unusedMessage: false, targets: [{ target: action, path, mayReturn: true }] };
  const { guard, guards = [], requires_approval = false, approval_message } = action;
  const named = guards.map((name, index) => ({ name, path: [...path, "guards", index] }));
  const message = approval_message === undefined ? {} : { message: approval_message };
  return {
    ...same,
    guards: guard === undefined ? named : [{ name: guard, path: [...path, "guard"] }, ...named],
    ...(requires_approval ? { approval: message } : {}),
    unusedMessage: approval_message !== undefined && !requires_approval,
    targets: targetsOf(action, path),
  };
}

function targetsOf(action: Move | Invocation | Parting, path: DocumentPath): readonly EdgeTarget[] {
  if ("target" in action) return [{ target: action.target, path: [...path, "target"], mayReturn: true }];
  if ("invoke" in action) return after(action, path);
  const here = [...path, "fork"];
  const branches = Object.entries(action.fork.branches).flatMap(([key, { initial, terminal }]) => [
    { target: initial, path: [...here, "branches", key, "initial"], mayReturn: false },
    { target: terminal, path: [...here, "branches", key, "terminal"], mayReturn: false },
  ]);
  return [...branches, ...after(action.fork, here)];
}

function after(
  { on_complete, on_fail }: { readonly on_complete: string; readonly on_fail?: string | undefined },
  path: DocumentPath,
): readonly EdgeTarget[] {
  const complete = { target: on_complete, path: [...path, "on_complete"], mayReturn: false };
  if (on_fail === undefined) return [complete];
  return [complete, { target: on_fail, path: [...path, "on_fail"], mayReturn: false }];
}
