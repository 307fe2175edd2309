// A pipeline as nodes and edges, for every way of drawing it.

import type { AllowedTool, ChoiceShape, PipelineSpec, StateSpec } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { stepsOf } from "@sluice/stages/runtime";
import { nameOf } from "../check/finding.ts";
import { ANY_EVENT, EVERY_STATE, entersOf, functionsOf, type Move, type MoveTable, moveTable } from "../check/moves.ts";
import { statesAt } from "../check/properties/capabilities.ts";

export interface Graph {
  readonly id: string;
  /** The initial state first, the ends last. */
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** The branches of forks. */
  readonly groups: readonly GraphGroup[];
}
export interface GraphNode {
  /** Letters and digits. */
  readonly id: string;
  /** On one line, without control characters. */
  readonly label: string;
  readonly kind: NodeKind;
  /** What it may use without asking. */
  readonly detail?: string;
  readonly group?: string;
}
/** `any`: every state. `elsewhere`: any state, which a function chooses. `interrupted`: where an interrupt came. */
export type NodeKind =
  | "initial"
  | "state"
  | "completed"
  | "failed"
  | "cancelled"
  | "fork"
  | "pipeline"
  | "any"
  | "elsewhere"
  | "interrupted";
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** What it waits for, and its condition. */
  readonly label: string;
  /** Not a route of its own: an interrupt, its return, or the start and the end of a branch. */
  readonly dashed: boolean;
  /** A person has to approve it. */
  readonly approval: boolean;
}
export interface GraphGroup {
  readonly id: string;
  readonly label: string;
}

/** Characters of a label. */
const LONGEST = 80;

/** The states and routes of a pipeline as nodes and edges, for drawings. */
export function graphOf(spec: PipelineSpec): Graph {
  const draft: Draft = {
    spec,
    moves: moveTable(spec),
    nodes: new Map(),
    edges: [],
    groups: [],
    groupOf: new Map(),
    forks: 0,
  };
  const order = [spec.initial, ...[...spec.states.keys()].filter((id) => id !== spec.initial)];
  for (const state of order) if (spec.states.has(state)) stateNode(draft, state);
  for (const state of order) drawState(draft, state);
  drawCommonRows(draft);
  for (const { name, files, target } of spec.interrupts)
    connect(
      draft,
      node(draft, "interrupted", "the interrupted state"),
      stateNode(draft, target),
      `${name}: ${files} changes`,
      { dashed: true },
    );
  const nodes = [...draft.nodes.values()].map((one) => {
    const group = draft.groupOf.get(one.id);
    return group === undefined ? one : { ...one, group };
  });
  const isEnd = ({ kind }: GraphNode): boolean => kind === "completed" || kind === "failed" || kind === "cancelled";
  return {
    id: clean(spec.id),
    nodes: [...nodes.filter((one) => !isEnd(one)), ...nodes.filter(isEnd)],
    edges: draft.edges,
    groups: draft.groups,
  };
}

interface Draft {
  readonly spec: PipelineSpec;
  readonly moves: MoveTable;
  readonly nodes: Map<string, GraphNode>;
  readonly edges: GraphEdge[];
  readonly groups: GraphGroup[];
  /** By node. */
  readonly groupOf: Map<string, string>;
  forks: number;
}

function clean(text: string): string {
  const line = visible(text).replaceAll(/\s+/gu, " ").trim();
  const characters = [...line];
  return characters.length <= LONGEST ? line : `${characters.slice(0, LONGEST - 1).join("")}…`;
}

/** The node of a key, which is made the first time. */
function node(draft: Draft, kind: NodeKind, label: string, detail?: string, key = `${kind} ${label}`): string {
  const known = draft.nodes.get(key);
  if (known !== undefined) return known.id;
  const made = {
    id: `n${draft.nodes.size}`,
    kind,
    label: clean(label),
    ...(detail === undefined ? {} : { detail: clean(detail) }),
  };
  draft.nodes.set(key, made);
  return made.id;
}

function stateNode(draft: Draft, state: string): string {
  const { spec } = draft;
  const of = spec.states.get(state);
  const kind = of?.final?.outcome ?? (state === spec.initial ? "initial" : "state");
  return node(
    draft,
    kind,
    nameOf(spec, state),
    of === undefined ? undefined : detailOf(spec, state, of),
    `state ${state}`,
  );
}

/** The tools of a state; of one that runs steps, the tools of its steps. */
function detailOf(
  spec: PipelineSpec,
  id: string,
  { final, kind, allowedTools, options, runs }: StateSpec,
): string | undefined {
  if (final !== undefined) return undefined;
  const what = kind === "agent" ? "" : `${kind}: `;
  const inside =
    stepsOf(options) === undefined && runs === undefined
      ? []
      : statesAt(spec, id).filter((each) => each.kind === "agent");
  const envelopes = [allowedTools, ...inside.map((each) => each.allowedTools)];
  if (envelopes.includes(undefined)) return `${what}any tool the mode allows`;
  const listed = envelopes.flatMap((envelope) => envelope ?? []);
  const tools = [...new Set(listed.map((tool: AllowedTool) => (typeof tool === "string" ? tool : tool.tool)))];
  return tools.length === 0 ? (kind === "agent" ? "no tools" : kind) : `${what}${tools.join(", ")}`;
}

function connect(
  { edges }: Draft,
  from: string,
  to: string,
  label: string,
  { dashed = false, approval = false }: { readonly dashed?: boolean; readonly approval?: boolean } = {},
): void {
  edges.push({ from, to, label: clean(label), dashed, approval });
}

function drawState(draft: Draft, state: string): void {
  const { spec } = draft;
  const from = stateNode(draft, state);
  for (const move of draft.moves.of(state)) if (move.row.from !== EVERY_STATE) drawMove(draft, from, move);
  const functions = functionsOf(spec, state);
  if (functions === undefined) return;
  if (functions.targets === undefined)
    connect(draft, from, node(draft, "elsewhere", "any state"), "its route decides", { dashed: true });
  for (const target of functions.targets ?? []) connect(draft, from, stateNode(draft, target), "");
  if (functions.targets?.length === 0) connect(draft, from, node(draft, "completed", "done"), "");
}

/** Rows of every state are drawn once. */
function drawCommonRows(draft: Draft): void {
  const { spec } = draft;
  const rows = new Map<number, Move>();
  for (const state of spec.states.keys())
    for (const move of draft.moves.of(state)) if (move.row.from === EVERY_STATE) rows.set(move.index, move);
  for (const move of [...rows.values()].toSorted((a, b) => a.index - b.index))
    drawMove(draft, node(draft, "any", "every state"), move);
}

function drawMove(draft: Draft, from: string, { row, shape }: Move): void {
  const { on, when, label } = row;
  const trigger = label ?? (typeof on === "string" ? on : on.event === ANY_EVENT ? "any other event" : on.event);
  const words = when === undefined ? trigger : `${trigger} [${when.text}]`;
  drawChoice(draft, from, words, row.approval !== undefined, shape);
}

function drawChoice(draft: Draft, from: string, label: string, approval: boolean, shape: ChoiceShape): void {
  const to = (target: string, dashed = false): void => connect(draft, from, target, label, { approval, dashed });
  switch (shape.kind) {
    case "to":
      to(stateNode(draft, shape.state));
      break;
    case "return":
      to(node(draft, "interrupted", "the interrupted state"), true);
      break;
    case "done":
      to(node(draft, "completed", "done"));
      break;
    case "fail":
      to(node(draft, "failed", `failed: ${shape.reason}`));
      break;
    case "cancel":
      to(node(draft, "cancelled", `cancelled: ${shape.reason}`));
      break;
    case "invoke": {
      const child = node(draft, "pipeline", `pipeline ${shape.pipeline}`, undefined, `invoke ${draft.forks}`);
      draft.forks += 1;
      to(child);
      connect(draft, child, stateNode(draft, shape.onComplete), "completed");
      if (shape.onFail !== undefined) connect(draft, child, stateNode(draft, shape.onFail), "failed");
      break;
    }
    case "fanOut": {
      const fork = forkNode(draft, "side by side");
      to(fork);
      const join = stateNode(draft, shape.join);
      const siblings = shape.list === undefined ? shape.siblings.map(({ state }) => state) : [shape.list];
      const times = shape.list === undefined ? "" : `${shape.siblings.length} items`;
      for (const sibling of siblings) {
        connect(draft, fork, stateNode(draft, sibling), times, { dashed: true });
        connect(draft, stateNode(draft, sibling), join, "joined", { dashed: true });
      }
      if (siblings.length === 0) connect(draft, fork, join, "joined", { dashed: true });
      break;
    }
    case "fork": {
      const fork = forkNode(draft, shape.join === "any" ? "any branch" : "all branches");
      to(fork);
      for (const { key, initial, terminal } of shape.branches) {
        connect(draft, fork, stateNode(draft, initial), key, { dashed: true });
        connect(draft, stateNode(draft, terminal), stateNode(draft, shape.onComplete), `${key} joined`, {
          dashed: true,
        });
        drawGroup(draft, key, statesOf(draft, initial, terminal));
      }
      if (shape.onFail !== undefined) connect(draft, fork, stateNode(draft, shape.onFail), "failed", { dashed: true });
      break;
    }
  }
}

function forkNode(draft: Draft, label: string): string {
  const fork = node(draft, "fork", label, undefined, `fork ${draft.forks}`);
  draft.forks += 1;
  return fork;
}

/** States that belong to a branch alone. */
function drawGroup(draft: Draft, key: string, states: readonly string[]): void {
  const own = statesOf(draft, draft.spec.initial, undefined);
  const members = states.filter((state) => !own.includes(state)).map((state) => stateNode(draft, state));
  const free = members.filter((member) => !draft.groupOf.has(member));
  if (free.length === 0) return;
  const id = `g${draft.groups.length}`;
  draft.groups.push({ id, label: clean(key) });
  for (const member of free) draft.groupOf.set(member, id);
}

/** The states of a walk from one state to another. Branches inside are walks of their own. */
function statesOf({ spec, moves }: Draft, initial: string, terminal: string | undefined): readonly string[] {
  const states = new Set([initial]);
  for (const state of states) {
    if (state === terminal) continue;
    for (const { shape } of moves.of(state))
      for (const next of entersOf(shape)) if (spec.states.has(next)) states.add(next);
    for (const target of functionsOf(spec, state)?.targets ?? []) states.add(target);
  }
  return [...states];
}
