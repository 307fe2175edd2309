import type { PipelineSpec } from "@sluice/core";
import { MAX_VISITS } from "@sluice/core/runtime";
import { type CheckFinding, listed, nameOf } from "../finding.ts";
import type { Flow } from "../flow.ts";
import { entersOf } from "../moves.ts";
import { statesAt } from "../properties/capabilities.ts";
import { mayAct } from "./permission-rules.ts";

/** States that are never entered or never left, loops without a way out, and ends that no run comes to. */
export function endRules(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  if (!flow.certain || spec.routes.kind !== "table") return [];
  return [...neverEntered(spec, flow), ...neverLeft(spec, flow), ...endlessLoops(spec, flow), ...noFailure(spec, flow)];
}

function neverEntered(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  return [...spec.states].flatMap(([id, { final }]): readonly CheckFinding[] => {
    if (flow.reached.has(id)) return [];
    const what = final === undefined ? "is never entered" : "cannot be reached";
    const message = `${nameOf(spec, id)} ${what}: the transitions that lead to it never apply.`;
    return [{ severity: "warning", rule: "never-entered", path: `stages.${id}`, message }];
  });
}

/** The states with a body that a run may enter along routes. */
function worked(spec: PipelineSpec, flow: Flow): readonly string[] {
  const states = flow.stops.filter(({ isSibling }) => !isSibling).map(({ state }) => state);
  return [...new Set(states)].filter((state) => spec.states.has(state));
}

function neverLeft(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  return worked(spec, flow).flatMap((state): readonly CheckFinding[] => {
    if (flow.moves(state).some(({ row: { on } }) => on !== "failure")) return [];
    const rows = flow.rows(state).length;
    if (rows === 0) return [];
    const message = `${nameOf(spec, state)} is a dead end: ${rows === 1 ? "its transition never applies" : "none of its transitions ever applies"}.`;
    return [{ severity: "warning", rule: "dead-end", path: `stages.${state}`, message }];
  });
}

/** Where each state may lead, and whether it may end the run or a branch. */
interface Exits {
  readonly next: ReadonlySet<string>;
  readonly ends: boolean;
}

function exitsOf(spec: PipelineSpec, flow: Flow, state: string): Exits {
  const next = new Set<string>();
  let ends = false;
  const terminals = new Set(flow.stops.flatMap((stop) => (stop.state === state ? (stop.terminal ?? []) : [])));
  for (const { shape } of flow.moves(state)) {
    if (shape.kind === "done" || shape.kind === "fail" || shape.kind === "cancel" || shape.kind === "return")
      ends = true;
    for (const entered of entersOf(shape)) {
      if (spec.states.get(entered)?.final !== undefined || terminals.has(entered)) ends = true;
      else next.add(entered);
    }
  }
  return { next, ends };
}

/** States that lead only to each other. A run that enters them ends at a cap. */
function endlessLoops(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  const states = worked(spec, flow);
  const exits = new Map(states.map((state) => [state, exitsOf(spec, flow, state)]));
  const leaving = new Set(states.filter((state) => exits.get(state)?.ends === true));
  // Whatever leads to a state that can be left can be left, too.
  for (const left of leaving)
    for (const state of states) if (exits.get(state)?.next.has(left) === true) leaving.add(state);
  const stuck = states.filter((state) => !leaving.has(state) && exits.get(state)?.next.size !== 0);
  const [first] = stuck;
  if (first === undefined) return [];
  const { maxVisits = MAX_VISITS } = spec.limits;
  const names = stuck.map((state) => nameOf(spec, state));
  const subject = names.length === 1 ? `${names[0]} leads only to itself` : `${listed(names)} lead only to each other`;
  const message = `${subject}, so a run that comes there never ends by itself: it fails when a state is entered ${maxVisits} times.`;
  return [{ severity: "warning", rule: "endless-loop", path: `stages.${first}`, message, suggestion: "add a way out" }];
}

/** An agent that cannot do its work has no event to say so. Work that changes nothing has little to fail at. */
function noFailure(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  const byEvents = worked(spec, flow).filter((state) => spec.states.get(state)?.completesByEvents === true);
  if (!byEvents.some((state) => mayAct(statesAt(spec, state)))) return [];
  const fails = (state: string): boolean => {
    const outcome = spec.states.get(state)?.final?.outcome;
    return outcome === "failed" || outcome === "cancelled";
  };
  const moves = worked(spec, flow).flatMap((state) => flow.moves(state));
  const handled = moves.some(
    ({ row: { on }, shape }) =>
      on === "failure" || shape.kind === "fail" || shape.kind === "cancel" || entersOf(shape).some(fails),
  );
  if (handled) return [];
  const message =
    "No transition leads to a failed end, so an agent that cannot do its work can only continue or use up its turns.";
  const suggestion = "add a final state for failures, and an event that leads to it";
  return [{ severity: "warning", rule: "no-failure-path", path: `stages.${spec.initial}`, message, suggestion }];
}
