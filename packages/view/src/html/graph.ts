import { type PipelinePart, pipelinePart } from "../projection/graph/pipeline-view.ts";
import {
  type ListItems,
  listStatus,
  type StateStop,
  stationsFromInitial,
  stopsIn,
} from "../projection/graph/stations.ts";
import type { RunView } from "../projection/run-view.ts";
import { headOf } from "../text/clean.ts";
import { cut } from "../text/width.ts";
import { type Hop, hopTarget } from "../words/routes.ts";
import { count, grouped } from "../words/words.ts";
import { html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { listMark, statusMark } from "./markup/status.ts";
import { cutNote } from "./markup/texts.ts";

/** How a run's last route ends it. */
type GraphEnd = "done" | "fail" | "cancel";

const ENDS: Readonly<Record<GraphEnd, readonly [sign: string, words: string]>> = {
  done: ["✔", "run completed"],
  fail: ["✖", "run failed"],
  cancel: ["⊘", "run cancelled"],
};

/** A state, a pipeline that a state runs, or an end of the run. */
type GraphNode =
  | { readonly kind: "pipeline"; readonly id: string; readonly pipeline: string }
  | {
      readonly kind: "stop";
      readonly id: string;
      readonly stop: StateStop;
      readonly items: ListItems | undefined;
      readonly isInitial: boolean;
      readonly label: string;
    }
  | { readonly kind: "end"; readonly id: string; readonly ending: GraphEnd };

interface Edge {
  readonly from: string;
  readonly to: string;
  /** How often it was taken; 0 for a possible transition. */
  readonly taken: number;
  /** The events that led along it. */
  readonly events: readonly string[];
  /** A state waits at its beginning, or continues at its end. */
  readonly isDetour: boolean;
}

/** The top left corner of a node's box, in pixels. */
interface Corner {
  readonly x: number;
  readonly y: number;
}

/** Nodes in one row; more siblings continue in the next. */
const MOST_BESIDE = 4;
const MOST_STATES = 80;
const MOST_STEPS = 200;
const LONGEST_NAME = 100;
/** Columns of a name in its box, and of the line below it. */
const NAME_COLUMNS = 19;
const FACT_COLUMNS = 30;

const BOX_WIDTH = 200;
const BOX_HEIGHT = 56;
const COLUMN_GAP = 20;
const ROW_GAP = 52;
const LANE_WIDTH = 18;
/** Lanes at each side; more edges share them. */
const MOST_LANES = 12;
const MARGIN = 10;
const CORNER = 8;

/** Pipelines that a run invoked, with a picture each. */
const MOST_PIPELINES = 6;
/** Events that are named at an edge, and the columns of one. */
const MOST_EVENTS = 3;
const EVENT_COLUMNS = 16;

/** Each pipeline as a picture, with the path of the run, and the path in words. `anchors` has the executions with a section. */
export function graphMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const part = pipelinePart(view);
  const words = part.path
    .filter(({ runId }) => runId === view.runId)
    .map((hop) => `${headOf(hop.from, LONGEST_NAME)} → ${hopTarget(hop)}`);
  // Of a pipeline that was invoked several times, the last run.
  const invoked = [...new Map(view.invoked.map((one) => [one.pipeline, one])).values()];
  const others = invoked.slice(0, MOST_PIPELINES).map(
    (one, at) => html`<h3>Pipeline ${one.pipeline}, as ${one.key}</h3>
${pictureMarkup(pipelinePart(view, one.runId), `graph-${at + 1}`, [], anchors)}`,
  );
  const left = invoked.length - others.length;
  return html`${pictureMarkup(part, "graph", words, anchors)}${others}${left > 0 ? html`<p>${cutNote(count(left, "pipeline"))}</p>` : NOTHING}
<p class="legend">Solid lines were taken, dashed lines are possible, dotted lines lead to the state that handles an interrupt and back. A box with a solid edge was entered, one with a dashed edge was not reached.</p>
${stepsMarkup(words)}`;
}

function pictureMarkup(
  part: PipelinePart,
  id: string,
  words: readonly string[],
  anchors: ReadonlyMap<string, string>,
): Markup {
  const byState = new Map(
    part.executions.flatMap(({ stateId, key }) => {
      const anchor = anchors.get(key);
      return anchor === undefined ? [] : [[stateId, anchor] as const];
    }),
  );
  const { rows, left } = rowsOf(part);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="The pipeline ${part.pipeline} as a picture">
${picture({ id, rows, edges: edgesOf(part), words, anchors: byState })}</div>
${left > 0 ? html`<p>${cutNote(count(left, "state"))}</p>` : NOTHING}`;
}

function stepsMarkup(words: readonly string[]): Markup {
  if (words.length === 0) return html`<p>No route was decided yet.</p>`;
  const left = words.length - MOST_STEPS;
  const steps = words.slice(0, MOST_STEPS).map((step) => html`<li>${step}</li>`);
  return html`<details${words.length > 12 ? NOTHING : html` open`}><summary>The path in words</summary><ol class="steps">${steps}${left > 0 ? html`<li>${cutNote(count(left, "step"))}</li>` : NOTHING}</ol></details>`;
}

/** Rows of states in declared order, the initial state first, and the ends of the run; and the number of states left out. */
function rowsOf(view: PipelinePart): { readonly rows: readonly (readonly GraphNode[])[]; readonly left: number } {
  const rows: GraphNode[][] = [];
  const labels = new Map(view.states.map(({ id, label = id }) => [id, label]));
  let states = 0;
  for (const station of stationsFromInitial(view)) {
    const stops = stopsIn(station);
    const items = station.kind === "list" ? station.items : undefined;
    for (let at = 0; at < stops.length; at += MOST_BESIDE) {
      const row = stops.slice(at, at + MOST_BESIDE);
      states += row.length;
      if (states <= MOST_STATES)
        rows.push(
          row.map((stop) => ({
            kind: "stop",
            id: stop.id,
            stop,
            items,
            isInitial: stop.id === view.initial,
            label: labels.get(stop.id) ?? stop.id,
          })),
        );
    }
    const invoked = [...new Set(stops.flatMap(({ id }) => pipelinesAfter(view, id)))];
    for (let at = 0; at < invoked.length && rows.length < MOST_STATES; at += MOST_BESIDE)
      rows.push(
        invoked
          .slice(at, at + MOST_BESIDE)
          .map((pipeline) => ({ kind: "pipeline", id: pipelineId(pipeline), pipeline })),
      );
  }
  const left = states - rows.flat().filter(({ kind }) => kind === "stop").length;
  const endings = new Set(view.path.flatMap((hop) => endingOf(hop, view.runId) ?? []));
  if (endings.size > 0) rows.push([...endings].map((ending) => ({ kind: "end", id: endId(ending), ending })));
  return { rows, left };
}

/** The pipelines that a state ran, or that ran after it. */
function pipelinesAfter({ forks }: PipelinePart, state: string): readonly string[] {
  return forks.flatMap(({ from, children = [] }) =>
    from === state ? children.flatMap((child) => (child.kind === "pipeline" ? [child.pipeline] : [])) : [],
  );
}

/** The id of a pipeline's node; no state's id contains a line break. */
function pipelineId(pipeline: string): string {
  return `\npipeline ${pipeline}`;
}

/** The id of an end node; no state's id contains a line break. */
function endId(ending: GraphEnd): string {
  return `\n${ending}`;
}

/** Only the routes of the run itself end it. */
function endingOf({ runId, choice }: Hop, rootId: string): GraphEnd | undefined {
  if (runId !== rootId) return undefined;
  return choice === "done" || choice === "fail" || choice === "cancel" ? choice : undefined;
}

function edgesOf({ path, states, forks, runId }: PipelinePart): readonly Edge[] {
  const edges = new Map<string, Edge>();
  const add = (from: string, to: string, taken: number, { event, choice }: Partial<Hop> = {}): void => {
    const isDetour = choice === "interrupt" || choice === "return";
    const key = JSON.stringify([from, to, isDetour]);
    const known = edges.get(key);
    const events = new Set([...(known?.events ?? []), ...(event === undefined ? [] : [event])]);
    edges.set(key, { from, to, taken: (known?.taken ?? 0) + taken, events: [...events], isDetour });
  };
  for (const hop of path) {
    for (const target of hop.to) add(hop.from, target, 1, hop);
    const ending = endingOf(hop, runId);
    if (ending !== undefined) add(hop.from, endId(ending), 1);
  }
  for (const { from, join, joined, failed, onFail, list, siblings, children } of forks) {
    const next = failed === true ? onFail : join;
    const ends = children?.map((child) => (child.kind === "branch" ? child.terminal : pipelineId(child.pipeline)));
    for (const child of children ?? []) if (child.kind === "pipeline") add(from, pipelineId(child.pipeline), 1);
    for (const end of ends ?? (list === undefined ? siblings : [list]))
      if (next !== undefined && next !== end) add(end, next, joined ? 1 : 0);
  }
  // A state that fans out reaches its join through the siblings, and the end of a branch through the branch.
  const later = new Set(path.map(({ from, join = "" }) => JSON.stringify([from, join])));
  for (const { from, children = [] } of forks)
    for (const child of children) if (child.kind === "branch") later.add(JSON.stringify([from, child.terminal]));
  for (const { id, targets = [] } of states)
    for (const target of targets) if (!later.has(JSON.stringify([id, target]))) add(id, target, 0);
  return [...edges.values()];
}

interface Picture {
  /** Unique on the page. */
  readonly id: string;
  readonly rows: readonly (readonly GraphNode[])[];
  readonly edges: readonly Edge[];
  readonly words: readonly string[];
  /** The section of each state's last execution. */
  readonly anchors: ReadonlyMap<string, string>;
}

/** Rows from top to bottom. Edges to the next row are curves; longer ones have lanes at the right, those back at the left. */
function picture({ id, rows, edges: all, words, anchors }: Picture): Markup {
  const rowAt = new Map(rows.flatMap((row, index) => row.map(({ id }) => [id, index] as const)));
  const reach = ({ from, to }: Edge): number => (rowAt.get(to) ?? 0) - (rowAt.get(from) ?? 0);
  const edges = all
    .filter(({ from, to }) => rowAt.has(from) && rowAt.has(to))
    .toSorted((a, b) => Math.abs(reach(a)) - Math.abs(reach(b)));
  const sides = { back: edges.filter((edge) => reach(edge) <= 0), ahead: edges.filter((edge) => reach(edge) > 1) };
  const offset = MARGIN + Math.min(sides.back.length, MOST_LANES) * LANE_WIDTH;
  const inner = widthOfRow(Math.max(1, ...rows.map((row) => row.length)));
  const width = offset + inner + Math.min(sides.ahead.length, MOST_LANES) * LANE_WIDTH + MARGIN;
  const height = Math.max(1, rows.length) * (BOX_HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN;
  const places = new Map<string, Corner>();
  const boxes: Markup[] = [];
  for (const [index, row] of rows.entries())
    for (const [column, node] of row.entries()) {
      const x = offset + (inner - widthOfRow(row.length)) / 2 + column * (BOX_WIDTH + COLUMN_GAP);
      const place = { x, y: MARGIN + index * (BOX_HEIGHT + ROW_GAP) };
      places.set(node.id, place);
      boxes.push(boxMarkup(node, place, anchors));
    }
  const lines = edges.map((edge) => {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (from === undefined || to === undefined) return NOTHING;
    if (reach(edge) === 1) return curve(id, edge, from, to);
    const isBack = reach(edge) < 1;
    const lane = ((isBack ? sides.back : sides.ahead).indexOf(edge) % MOST_LANES) * LANE_WIDTH + LANE_WIDTH / 2;
    return detour(id, edge, from, to, isBack ? offset - lane : offset + inner + lane);
  });
  return html`<svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-text">
<title id="${id}-title">The states of the pipeline and the path of the run</title>
<desc id="${id}-text">${words.length === 0 ? "No transition was taken." : words.slice(0, MOST_STEPS).join("; ")}</desc>
<defs>${(["taken", "open", "aside"] as const).map((name) => arrow(id, name))}</defs>
${lines}${boxes}</svg>`;
}

function widthOfRow(columns: number): number {
  return columns * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP;
}

function curve(id: string, edge: Edge, from: Corner, to: Corner): Markup {
  const [x1, y1, x2, y2] = [from.x + BOX_WIDTH / 2, from.y + BOX_HEIGHT, to.x + BOX_WIDTH / 2, to.y - 2];
  const middle = (y1 + y2) / 2;
  return edgeMarkup(
    id,
    edge,
    `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`,
    (x1 + x2) / 2 + 8,
    middle + 4,
  );
}

/** Leaves and enters at the same side, at different heights, and follows a lane at `x`. */
function detour(id: string, edge: Edge, from: Corner, to: Corner, x: number): Markup {
  const side = x < from.x ? -1 : 1;
  const edgeOf = (place: Corner): number => (side === 1 ? place.x + BOX_WIDTH : place.x);
  const [y1, y2] = [from.y + BOX_HEIGHT * 0.7, to.y + BOX_HEIGHT * 0.3];
  const down = y2 > y1 ? CORNER : -CORNER;
  const turn = x - side * CORNER;
  const path =
    `M${edgeOf(from)} ${y1}H${turn}Q${x} ${y1} ${x} ${y1 + down}` +
    `V${y2 - down}Q${x} ${y2} ${turn} ${y2}H${edgeOf(to) + side * 2}`;
  return edgeMarkup(id, edge, path, x + 3, (y1 + y2) / 2);
}

/** An edge along an SVG path, with its events and how often it was taken at a position. */
function edgeMarkup(
  id: string,
  { from, to, taken, events, isDetour }: Edge,
  path: string,
  x: number,
  y: number,
): Markup {
  const name = isDetour ? "aside" : taken > 0 ? "taken" : "open";
  const often = taken === 0 ? "not taken" : `taken ${count(taken, "time")}`;
  const by = events.length === 0 ? "" : `, by ${events.slice(0, MOST_STATES).join(", ")}`;
  const words = [
    ...events.slice(0, MOST_EVENTS).map((event) => fitted(event, EVENT_COLUMNS)),
    ...(taken > 1 ? [`${taken}×`] : []),
  ].join(" ");
  const times = words === "" ? NOTHING : html`<text class="often" x="${x}" y="${y}">${words}</text>`;
  return html`<g><title>${nodeName(from)} to ${nodeName(to)}: ${often}${by}</title><path class="way ${name}" d="${path}" marker-end="url(#${id}-${name})"/>${times}</g>\n`;
}

function nodeName(id: string): string {
  if (!id.startsWith("\n")) return id;
  return id.startsWith(pipelineId("")) ? id.slice(1) : "the end";
}

function arrow(id: string, name: "taken" | "open" | "aside"): Markup {
  return html`<marker id="${id}-${name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path class="head ${name}" d="M0 0L10 5L0 10z"/></marker>`;
}

function boxMarkup(node: GraphNode, { x, y }: Corner, anchors: ReadonlyMap<string, string>): Markup {
  const edge = (radius: number): Markup =>
    html`<rect x="${x}" y="${y}" width="${BOX_WIDTH}" height="${BOX_HEIGHT}" rx="${radius}"/>`;
  if (node.kind === "end") {
    const [sign, words] = ENDS[node.ending];
    return html`<g class="box end ${node.ending}">${edge(BOX_HEIGHT / 2)}<text x="${x + BOX_WIDTH / 2}" y="${y + BOX_HEIGHT / 2 + 5}" text-anchor="middle" class="name">${sign} ${words}</text></g>\n`;
  }
  if (node.kind === "pipeline")
    return html`<g class="box pipeline"><title>pipeline ${node.pipeline}</title>${edge(9)}<text x="${x + 14}" y="${y + 24}" class="name">▣ ${fitted(node.pipeline, NAME_COLUMNS)}</text><text x="${x + 14}" y="${y + 43}" class="fact">another pipeline</text></g>\n`;
  const { id, isInitial, items, label } = node;
  const { execution, visits, final, endsBranch } = node.stop;
  if (final !== undefined) return finalMarkup(label, final, edge(BOX_HEIGHT / 2), { x, y });
  const status = items === undefined ? execution?.status : listStatus(items);
  const isEnd = execution === undefined && endsBranch === true;
  const { sign, word } = isEnd ? BRANCH_END : items === undefined ? statusMark(status) : listMark(items);
  const facts = [
    word,
    visits > 1 ? `entered ${visits}×` : "",
    items === undefined && execution !== undefined && execution.turns > 0 ? count(execution.turns, "turn") : "",
    items === undefined ? "" : `${grouped(items.completed)} of ${grouped(items.total)} done`,
    isInitial && visits < 2 ? "first" : "",
  ].filter((fact) => fact !== "");
  const line = facts.join(" · ");
  const box = html`<g class="box ${isEnd ? "completed" : (status ?? "unreached")}"><title>${id}: ${facts.join(", ")}</title>${edge(9)}<text x="${x + 14}" y="${y + 24}" class="name">${sign} ${fitted(label, NAME_COLUMNS)}</text><text x="${x + 14}" y="${y + 43}" class="fact">${line.length > FACT_COLUMNS ? word : line}</text></g>`;
  return html`${linkTo(anchors.get(id), box)}\n`;
}

/** Of a state that ended a branch and was not entered. */
const BRANCH_END = { sign: "✔", word: "ended a branch" };

/** A name as it fits its place. */
function fitted(name: string, width: number): string {
  return cut([{ text: headOf(name, width * 4) }], width)
    .map(({ text }) => text)
    .join("");
}

const FINAL_ENDS: ReadonlyMap<string, GraphEnd> = new Map([
  ["completed", "done"],
  ["failed", "fail"],
  ["cancelled", "cancel"],
]);

/** A final state: how it ends the run, and whether it did. */
function finalMarkup(
  name: string,
  { outcome, reached }: NonNullable<StateStop["final"]>,
  edge: Markup,
  { x, y }: Corner,
): Markup {
  const ending = FINAL_ENDS.get(outcome) ?? "done";
  const [sign, words] = reached ? [ENDS[ending][0], ENDS[ending][1]] : ["○", `ends the run: ${outcome}`];
  const [middle, top] = [x + BOX_WIDTH / 2, y + 24];
  return html`<g class="box end ${reached ? ending : "unreached"}"><title>${name}: ${words}</title>${edge}<text x="${middle}" y="${top}" text-anchor="middle" class="name">${sign} ${fitted(name, NAME_COLUMNS)}</text><text x="${middle}" y="${top + 19}" text-anchor="middle" class="fact">${words}</text></g>\n`;
}
