import type { PipelineSpec } from "@sluice/core";
import { conditionWords, type OperatorCondition } from "../../expressions/guard.ts";
import { contradictionIn, impossibleIn, type KnownContext, valueWords } from "../conditions.ts";
import { type CheckFinding, listed, nameOf } from "../finding.ts";
import type { Flow } from "../flow.ts";
import { type Move, moveWords } from "../moves.ts";

/** Rows that never fire. */
export function rowRules(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  const found: CheckFinding[] = [];
  for (const [index, uses] of usesOfRows(spec, flow)) {
    const [first] = uses;
    if (first === undefined || uses.some(({ fires }) => fires)) continue;
    found.push(
      ...(contradiction(index, first.move) ?? shadowed(spec, index, uses) ?? impossible(spec, flow, index, uses)),
    );
  }
  return found;
}

/** What becomes of a row in one of its states. */
interface Use {
  readonly state: string;
  readonly move: Move;
  readonly fires: boolean;
  /** The row that fires in its place. */
  readonly before: Move | undefined;
}

/** The rows by index, with the states that a run may enter. */
function usesOfRows(spec: PipelineSpec, flow: Flow): ReadonlyMap<number, readonly Use[]> {
  const rows = new Map<number, Use[]>();
  for (const state of spec.states.keys()) {
    const fired = new Set(flow.moves(state).map(({ index }) => index));
    for (const move of flow.rows(state)) {
      const use = { state, move, fires: fired.has(move.index), before: flow.before(state, move) };
      const uses = rows.get(move.index);
      if (uses === undefined) rows.set(move.index, [use]);
      else uses.push(use);
    }
  }
  return rows;
}

function contradiction(index: number, { row }: Move): readonly CheckFinding[] | undefined {
  const conditions = row.when === undefined ? undefined : contradictionIn(row.when);
  if (conditions === undefined) return undefined;
  const words = listed(conditions.map(conditionWords));
  const message =
    conditions.length === 1
      ? `No value satisfies the condition ${words}.`
      : `No value satisfies both conditions: ${words}.`;
  return [{ severity: "warning", rule: "guard-contradiction", path: `transitions[${index}].when`, message }];
}

function shadowed(spec: PipelineSpec, index: number, uses: readonly Use[]): readonly CheckFinding[] | undefined {
  const [first] = uses;
  if (first === undefined || !uses.every(({ before }) => before !== undefined)) return undefined;
  const { before, state, move } = first;
  if (before === undefined) return undefined;
  const why = before.row.when === undefined ? "has no condition" : "has the same condition or a weaker one";
  const message = `This transition of ${nameOf(spec, state)} never applies: ${namedBefore(before, move)} comes first and ${why}.`;
  const suggestion = "move it up, or remove it";
  return [{ severity: "warning", rule: "shadowed-row", path: `transitions[${index}]`, message, suggestion }];
}

function namedBefore(before: Move, move: Move): string {
  const words = moveWords(before);
  return words === moveWords(move) ? `another one (${words})` : words;
}

/** A row whose guard reads what nothing can have set before. */
function impossible(spec: PipelineSpec, flow: Flow, index: number, uses: readonly Use[]): readonly CheckFinding[] {
  for (const { state, move, before } of uses) {
    if (before !== undefined) continue;
    const stops = flow.stops.filter((stop) => stop.state === state && !stop.isSibling);
    const [stop] = stops;
    const condition = stop && impossibleIn(move.row.when, stop.context);
    if (stop === undefined || condition === undefined) continue;
    const message = `The condition of ${moveWords(move)} in ${nameOf(spec, state)} can never hold: it needs ${conditionWords(condition)}, ${whyFixed(spec, state, condition, stop.context)}`;
    const suggestion = `set ${condition.field} in the context, or let an earlier transition send it`;
    return [{ severity: "warning", rule: "guard-never", path: `transitions[${index}].when`, message, suggestion }];
  }
  return [];
}

function whyFixed(spec: PipelineSpec, state: string, condition: OperatorCondition, context: KnownContext): string {
  const value = valueWords(condition, context) ?? "fixed";
  const name = nameOf(spec, state);
  return `but ${condition.field} is always ${value} in ${name}: no transition before it can change that, since the data of a transition is added only after its condition held.`;
}
