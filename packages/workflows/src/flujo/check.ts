// What the rows and end states of a machine have wrong beyond their shape.

import { isPlainEnd, outcomeOf } from "../kinds/ends.ts";
import { type NamedTarget, routerTargets } from "../kinds/fields.ts";
import { suggestClosest } from "../read/field-names.ts";
import type { Finding } from "../read/shape.ts";
import type { FlujoMachine, FlujoState } from "./read-document.ts";

/** The name of every state in `from`. */
export const ANY = "*";

/** `read` are the findings of reading the document, which leaves out what is mistaken. */
export function checkMachine(
  machine: FlujoMachine,
  read: readonly Finding[],
  orchestrator?: { readonly fallback?: string | undefined },
): readonly Finding[] {
  const { start, states, names, ends, transitions, at } = machine;
  const ended = new Set(ends.map(({ name }) => name));
  const known = [...names, ...ended];
  const found: Finding[] = [];
  const isKnown = (name: string): boolean => names.has(name) || ended.has(name);
  if (start !== undefined && !isKnown(start)) found.push(unknownState(start, known, at("start_state")));
  for (const [index, { from, to }] of transitions.entries()) {
    const path = at("transitions", index, "from");
    if (from !== ANY && !isKnown(from)) found.push(unknownState(from, known, path));
    if (ended.has(from)) {
      const message = `${JSON.stringify(from)} ends the run, so nothing leads on from it.`;
      found.push({ severity: "error", rule: "final-body", message, suggestion: "remove this transition", path });
    }
    if (!isKnown(to)) found.push(unknownState(to, known, at("transitions", index, "to")));
  }
  for (const state of states.values())
    for (const { name, path } of chosenTargets(state)) if (!isKnown(name)) found.push(unknownState(name, known, path));
  for (const [index, { from, on }] of transitions.entries()) {
    if (on !== "success" || !isRouted(machine, from)) continue;
    const message = `${JSON.stringify(from)} is a router: its model chooses what follows, so this transition never applies.`;
    const suggestion = "remove it, or add its target to the router";
    found.push({ severity: "error", rule: "event-row", message, suggestion, path: at("transitions", index, "on") });
  }
  if (orchestrator !== undefined) return [...found, ...orchestratedFindings(machine, orchestrator.fallback, isKnown)];
  if (ends.length === 0) {
    const message = "The machine has no end state, so it cannot end.";
    const suggestion = 'add "end_states"';
    found.push({ severity: "error", rule: "no-final", message, suggestion, path: machine.path, what: "key" });
  }
  for (const { name, path } of ends) found.push(...endFindings(name, path, states.get(name)));
  for (const state of states.values()) {
    if (ended.has(state.name) || state.outcome === undefined) continue;
    const message = `"outcome" is for end states.`;
    const suggestion = `add ${JSON.stringify(state.name)} to "end_states", or remove it`;
    found.push({ severity: "error", rule: "wrong-type", message, suggestion, path: state.at("outcome"), what: "key" });
  }
  // Without a row that is mistaken, what it leads to would seem to be out of reach.
  if (
    start === undefined ||
    read.some(({ severity, path }) => severity === "error" && isUnder(path, at("transitions")))
  )
    return found;
  const isSound = !found.some(({ severity }) => severity === "error");
  return [...found, ...reachFindings(machine), ...(isSound ? completionFindings(machine) : [])];
}

/** What has no place in a machine whose orchestrator chooses what follows every state. */
function orchestratedFindings(
  { transitions, ends, states, names, at }: FlujoMachine,
  fallback: string | undefined,
  isKnown: (name: string) => boolean,
): readonly Finding[] {
  const found = ends.flatMap(({ name, path }) => endFindings(name, path, states.get(name)));
  if (fallback !== undefined && !isKnown(fallback))
    found.push(unknownState(fallback, [...names], at("orchestrator", "fallback")));
  if (transitions.length === 0) return found;
  const message = "The orchestrator chooses what follows every state, so transitions have no effect.";
  const suggestion = 'remove them, or remove "orchestrator"';
  return [
    ...found,
    { severity: "error", rule: "no-effect", message, suggestion, path: at("transitions"), what: "key" },
  ];
}

function isUnder(path: Finding["path"], above: Finding["path"]): boolean {
  return above.every((step, index) => path[index] === step);
}

/** A machine that cannot complete fails in every run. */
function completionFindings(machine: FlujoMachine): readonly Finding[] {
  const reached = reachedStates(machine);
  const completing = machine.ends.filter(
    ({ name }) => outcomeOf(name, machine.states.get(name)?.outcome) === "completed",
  );
  if (completing.some(({ name }) => reached.has(name))) return [];
  const message = "No transition leads to an end state that completes the run.";
  const [first] = completing;
  const suggestion = first === undefined ? 'add such a state to "end_states"' : `add a transition to ${first.name}`;
  const path = machine.at("transitions");
  return [{ severity: "error", rule: "no-final", message, suggestion, path, what: "key" }];
}

function unknownState(name: string, known: readonly string[], path: Finding["path"]): Finding {
  const message = `There is no state ${JSON.stringify(name.slice(0, 80))}.`;
  return { severity: "error", rule: "unknown-target", message, suggestion: suggestClosest(name, known), path };
}

function endFindings(name: string, path: Finding["path"], state: FlujoState | undefined): readonly Finding[] {
  const found: Finding[] = [];
  if (state !== undefined && state.steps.length > 0) {
    const message = `${JSON.stringify(name)} is an end state, so its steps never run.`;
    found.push({ severity: "warning", rule: "final-body", message, path: state.path, what: "key" });
  }
  if (isPlainEnd(name, state?.outcome)) return found;
  const message = `A run that ends in ${JSON.stringify(name)} counts as completed.`;
  const suggestion = `write ${name}: { outcome: completed } in "states", or failed or cancelled`;
  return [...found, { severity: "warning", rule: "final-outcome", message, suggestion, path }];
}

/** The states that rows lead to from the start. */
export function reachedStates({ start, ends, states, transitions }: FlujoMachine): ReadonlySet<string> {
  const ended = new Set(ends.map(({ name }) => name));
  const reached = new Set(start === undefined ? [] : [start]);
  // A set is iterated in the order in which names are added to it, also while it grows.
  for (const name of reached) {
    if (ended.has(name)) continue;
    for (const { from, to } of transitions) if (from === name || from === ANY) reached.add(to);
    for (const { name: target } of chosenTargets(states.get(name))) reached.add(target);
  }
  return reached;
}

/** The states that the router of a state names. */
export function chosenTargets(state: FlujoState | undefined): readonly NamedTarget[] {
  return (state?.steps ?? []).flatMap(({ fields: { router = {} }, at }) =>
    routerTargets(router).map(({ name, path }) => ({ name, path: at("router", ...path) })),
  );
}

/** Whether a model chooses what follows a state. */
export function isRouted({ states }: FlujoMachine, name: string): boolean {
  return chosenTargets(states.get(name)).length > 0;
}

/** Whether a row is for the success of a state. */
export function handlesSuccess({ transitions }: FlujoMachine, state: string): boolean {
  return transitions.some(({ from, on }) => on === "success" && (from === state || from === ANY));
}

function reachFindings(machine: FlujoMachine): readonly Finding[] {
  const reached = reachedStates(machine);
  const ended = new Set(machine.ends.map(({ name }) => name));
  const found: Finding[] = [];
  for (const { name, path } of machine.states.values()) {
    if (!reached.has(name)) found.push(unreachable(name, path, machine));
    else if (!ended.has(name) && !handlesSuccess(machine, name) && !isRouted(machine, name)) {
      const message = `Nothing leads on from ${JSON.stringify(name)}: when it succeeds, the run fails.`;
      const suggestion = `add { from: ${name}, on: success, to: … }`;
      found.push({ severity: "warning", rule: "dead-end", message, suggestion, path, what: "key" });
    }
  }
  for (const { name, path } of machine.ends)
    if (!reached.has(name) && !machine.names.has(name)) found.push(unreachable(name, path, machine));
  return found;
}

function unreachable(name: string, path: Finding["path"], { start }: FlujoMachine): Finding {
  const message = `${JSON.stringify(name)} cannot be reached from ${JSON.stringify(start ?? "the start")}.`;
  return { severity: "warning", rule: "unreachable", message, path, what: "key" };
}
