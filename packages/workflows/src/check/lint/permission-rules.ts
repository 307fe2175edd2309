import type { PipelineSpec, StateSpec } from "@sluice/core";
import { matchesName } from "@sluice/core/gate";
import { type CheckFinding, nameOf } from "../finding.ts";
import type { Flow } from "../flow.ts";
import { entersOf, type Move } from "../moves.ts";
import { statesAt, statesInside } from "../properties/capabilities.ts";

/** Permissions that grow from one state to the next, and changes that no one reviews. */
export function permissionRules(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  return [...privilegeJumps(spec, flow), ...unreviewed(spec, flow)];
}

/** The tools that change files. */
const WRITERS = ["Edit", "Write"];

function lists(states: readonly StateSpec[], tool: string, isPlain = false): boolean {
  return states.some(({ patterns = [] }) =>
    patterns.some((pattern) => matchesName(pattern, tool) && (!isPlain || pattern.scope === undefined)),
  );
}

function mayWrite(states: readonly StateSpec[]): boolean {
  return WRITERS.some((tool) => lists(states, tool));
}

/** Whether states with envelopes can only look. */
function onlyRead(states: readonly StateSpec[]): boolean {
  return (
    states.every(({ final, allowedTools }) => final === undefined && allowedTools !== undefined) && !mayAct(states)
  );
}

/** Whether states list a tool that changes something, or run a command. */
export function mayAct(states: readonly StateSpec[]): boolean {
  return mayWrite(states) || lists(states, "Bash") || states.some(({ kind }) => COMMANDS.has(kind));
}

/** The kinds of states that run a command of their pipeline's author. */
const COMMANDS: ReadonlySet<string> = new Set(["script", "poll"]);

/** A state that looks at what others did, by its name. */
const REVIEWING = /review|approv|verif|audit|inspect/iu;

function privilegeJumps(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  const found: CheckFinding[] = [];
  const seen = new Set<string>();
  for (const from of spec.states.keys()) {
    if (!onlyRead(statesAt(spec, from)) || REVIEWING.test(nameOf(spec, from))) continue;
    for (const { index, row, shape } of flow.moves(from)) {
      if (row.approval !== undefined) continue;
      for (const to of entersOf(shape)) {
        const target = statesAt(spec, to);
        if (!mayWrite(target) || !lists(target, "Bash", true) || seen.has(to)) continue;
        seen.add(to);
        const message = `${nameOf(spec, from)} only reads, and ${nameOf(spec, to)}, which follows it without an approval or a review, may change files and run any command.`;
        const suggestion = "ask for approval on the way, add a review, or list the commands that may run";
        const path = index < 0 ? `stages.${from}` : `transitions[${index}]`;
        found.push({ severity: "warning", rule: "privilege-jump", path, message, suggestion });
      }
    }
  }
  return found;
}

/** States that change files and may be the last ones that work. */
function unreviewed(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  if (!flow.certain) return [];
  const { routes } = spec;
  if (routes.kind !== "table") return [];
  const worked = new Set(flow.stops.map(({ state }) => state));
  return [...worked].flatMap((state): readonly CheckFinding[] => {
    if (!mayWrite(statesAt(spec, state)) || !completesUnreviewed(spec, flow, state)) return [];
    const message = `${nameOf(spec, state)} may change files, and the run may then complete without a state that only looks at the changes and without an approval.`;
    const suggestion = "add a review or a test state after it, or ask for approval";
    return [{ severity: "warning", rule: "write-without-review", path: `stages.${state}`, message, suggestion }];
  });
}

/** Whether a run may complete from here through writing states alone. */
function completesUnreviewed(spec: PipelineSpec, flow: Flow, start: string): boolean {
  const waiting = new Map<string, BranchState>();
  const add = (found: readonly BranchState[]): void => {
    for (const one of found) waiting.set(`${one.terminal ?? ""} ${one.state}`, one);
  };
  const stopsOf = (state: string): readonly BranchState[] => flow.stops.filter((stop) => stop.state === state);
  add(stopsOf(start));
  for (const { state, terminal } of waiting.values()) {
    for (const move of flow.moves(state)) {
      if (move.row.approval !== undefined || move.shape.kind === "return" || reviewsOnTheWay(spec, move)) continue;
      // In a branch, only its terminal completes, and the fork's next state follows.
      if (terminal === undefined && move.shape.kind === "done") return true;
      for (const next of entersOf(move.shape)) {
        const joins = next === terminal ? joinsOf(flow, next) : [next];
        const isEnd = (one: string): boolean => spec.states.get(one)?.final?.outcome === "completed";
        if ((terminal === undefined || next === terminal) && joins.some(isEnd)) return true;
        for (const one of joins.filter((join) => mayWrite(statesAt(spec, join))))
          add(next === terminal ? stopsOf(one) : [{ state: one, terminal }]);
      }
    }
  }
  return false;
}

/** A state in the run, or in a branch that a terminal ends. */
type BranchState = Pick<Flow["stops"][number], "state" | "terminal">;

/** Where the forks continue that have a branch with this terminal. */
function joinsOf(flow: Flow, terminal: string): readonly string[] {
  const moves = [...flow.reached].flatMap((state) => flow.moves(state));
  return moves.flatMap(({ shape }) =>
    shape.kind === "fork" && shape.branches.some((branch) => branch.terminal === terminal) ? [shape.onComplete] : [],
  );
}

/** Whether a child of a fan-out only looks at the changes. */
function reviewsOnTheWay(spec: PipelineSpec, { shape }: Move): boolean {
  switch (shape.kind) {
    case "fanOut":
      return shape.siblings.some(({ state }) => !mayWrite(statesAt(spec, state)));
    case "fork":
      return shape.branches.some(({ initial }) => !mayWrite(statesAt(spec, initial)));
    case "invoke":
      return !mayWrite(statesInside(spec, shape.pipeline));
    default:
      return false;
  }
}
