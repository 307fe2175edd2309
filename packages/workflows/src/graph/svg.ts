import type { PipelineSpec } from "@sluice/core";
import { type GraphEdge, type GraphGroup, type GraphNode, graphOf } from "./graph.ts";
import { layersOf } from "./layers.ts";

const BOX = { width: 200, height: 52 } as const;
const GAP = { x: 70, y: 76 } as const;
const MARGIN = 24;
/** Between edges beside the boxes. */
const LANE = 22;
/** Characters of a label that fit into a box, and beside an edge. */
const FITS = { name: 24, detail: 32, edge: 40 } as const;

/** A pipeline as an SVG image: one file without scripts, styles from elsewhere or links. Whatever its names hold, they stay text. */
export function svgGraph(spec: PipelineSpec): string {
  const graph = graphOf(spec);
  const layers = layersOf(graph);
  const rowAt = new Map(layers.flatMap((layer, index) => layer.map(({ id }) => [id, index] as const)));
  const span = ({ from, to }: GraphEdge): number => (rowAt.get(to) ?? 0) - (rowAt.get(from) ?? 0);
  const back = graph.edges.filter((edge) => span(edge) < 1);
  const ahead = graph.edges.filter((edge) => span(edge) > 1);
  const left = MARGIN + back.length * LANE;
  const inner = Math.max(1, ...layers.map((layer) => layer.length)) * (BOX.width + GAP.x) - GAP.x;
  const places = new Map<string, Corner>();
  for (const [row, layer] of layers.entries()) {
    const wide = layer.length * (BOX.width + GAP.x) - GAP.x;
    for (const [column, { id }] of layer.entries())
      places.set(id, {
        x: left + (inner - wide) / 2 + column * (BOX.width + GAP.x),
        y: MARGIN + row * (BOX.height + GAP.y),
      });
  }
  const width = left + inner + ahead.length * LANE + MARGIN + LABEL_ROOM;
  const height = 2 * MARGIN + layers.length * (BOX.height + GAP.y) - GAP.y;
  const seen = new Map<string, number>();
  const edges = graph.edges.flatMap((edge): readonly Drawn[] => {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (from === undefined || to === undefined) return [];
    const reach = span(edge);
    const key = `${edge.from} ${reach === 1 ? edge.to : reach < 1}`;
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    if (reach === 1) return [curve(edge, from, to, nth)];
    const lane = reach < 1 ? left - (back.indexOf(edge) + 1) * LANE : left + inner + (ahead.indexOf(edge) + 1) * LANE;
    return [detour(edge, from, to, lane, nth)];
  });
  const boxes = graph.nodes.map((node) =>
    boxMarkup(
      node,
      places.get(node.id) ?? { x: 0, y: 0 },
      graph.groups.find(({ id }) => id === node.group),
    ),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="system-ui, sans-serif">`,
    `<title>${escaped(graph.id)}</title>`,
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z" fill="#555"/></marker></defs>',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...edges.map(({ line }) => line),
    ...boxes,
    // Above the boxes, which some lines pass.
    ...apart(
      edges.flatMap(({ label }) => label ?? []),
      [...places.values()],
    ).map(labelMarkup),
    "</svg>",
    "",
  ].join("\n");
}

/** For the labels of edges in the last lane. */
const LABEL_ROOM = 160;

/** An edge's line and its label. */
interface Drawn {
  readonly line: string;
  readonly label?: Label;
}
interface Label {
  readonly words: string;
  readonly x: number;
  readonly y: number;
  readonly anchor: "start" | "middle" | "end";
}
interface Corner {
  readonly x: number;
  readonly y: number;
}

function curve(edge: GraphEdge, from: Corner, to: Corner, nth: number): Drawn {
  // Several edges between two boxes are drawn beside each other.
  const aside = nth * 26;
  const [x1, y1, x2, y2] = [from.x + BOX.width / 2 + aside, from.y + BOX.height, to.x + BOX.width / 2 + aside, to.y];
  const middle = (y1 + y2) / 2;
  return edgeMarkup(
    edge,
    `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`,
    0.784 * x1 + 0.216 * x2,
    0.343 * y1 + 0.63 * middle + 0.027 * y2 + 4,
    "middle",
  );
}

/** Leaves and enters at one side, and follows a lane. The labels of one box stand below each other. */
function detour(edge: GraphEdge, from: Corner, to: Corner, lane: number, nth: number): Drawn {
  const isLeft = lane < from.x;
  const side = ({ x }: Corner): number => (isLeft ? x : x + BOX.width);
  const [y1, y2] = [from.y + BOX.height * 0.65, to.y + BOX.height * 0.35];
  const path = `M${side(from)} ${y1}H${lane}V${y2}H${side(to)}`;
  const x = side(from) + (isLeft ? -6 : 6);
  return edgeMarkup(edge, path, x, y1 + 14 + nth * 13, isLeft ? "end" : "start");
}

function edgeMarkup(
  { label, dashed, approval }: GraphEdge,
  path: string,
  x: number,
  y: number,
  anchor: Label["anchor"],
): Drawn {
  const asked = approval ? " (approval)" : "";
  const words = `${label}${asked}`;
  const style = `fill="none" stroke="#555" stroke-width="${approval ? 2.5 : 1.2}"${dashed ? ' stroke-dasharray="5 4"' : ""}`;
  const line = `<g><title>${escaped(words)}</title><path d="${path}" ${style} marker-end="url(#arrow)"/></g>`;
  if (words === "") return { line };
  return { line, label: { words: `${cut(label, FITS.edge - asked.length)}${asked}`, x, y, anchor } };
}

function labelMarkup({ words, x, y, anchor }: Label): string {
  return `<text x="${x}" y="${y}" font-size="11" text-anchor="${anchor}" fill="#222" stroke="#fff" stroke-width="3" paint-order="stroke">${escaped(words)}</text>`;
}

/** What a label takes: the width of its characters is a guess, since fonts differ. */
const LABEL = { character: 6, ascent: 10, line: 13 } as const;
/** How far down a label may move, in lines: past a box. */
const MOST_LINES = 6;

interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Moves labels down until they cover neither a box nor an earlier label, where there is room. */
function apart(labels: readonly Label[], boxes: readonly Corner[]): readonly Label[] {
  const taken: Area[] = boxes.map(({ x, y }) => ({ left: x, right: x + BOX.width, top: y, bottom: y + BOX.height }));
  return labels.map((label) => {
    const tries = Array.from({ length: MOST_LINES }, (_, line) => ({ ...label, y: label.y + line * LABEL.line }));
    const free = tries.find((one) => !taken.some((area) => overlap(area, areaOf(one)))) ?? label;
    taken.push(areaOf(free));
    return free;
  });
}

function areaOf({ words, x, y, anchor }: Label): Area {
  const width = [...words].length * LABEL.character;
  const left = anchor === "start" ? x : anchor === "end" ? x - width : x - width / 2;
  return { left, right: left + width, top: y - LABEL.ascent, bottom: y + 2 };
}

function overlap(one: Area, other: Area): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

const COLORS: Readonly<Partial<Record<GraphNode["kind"], string>>> = {
  completed: "#2e7d32",
  failed: "#c62828",
  cancelled: "#6d6d6d",
};
const ROUND: ReadonlySet<GraphNode["kind"]> = new Set([
  "completed",
  "failed",
  "cancelled",
  "any",
  "elsewhere",
  "interrupted",
]);

function boxMarkup({ kind, label, detail }: GraphNode, { x, y }: Corner, group: GraphGroup | undefined): string {
  const isDashed = kind === "any" || kind === "elsewhere" || kind === "interrupted";
  const middle = x + BOX.width / 2;
  const lines = detail === undefined ? [y + BOX.height / 2 + 5] : [y + 22, y + 40];
  const [first = 0, second] = lines;
  return [
    `<g><title>${escaped(detail === undefined ? label : `${label}: ${detail}`)}</title>`,
    `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="${ROUND.has(kind) ? BOX.height / 2 : 6}" fill="${group === undefined ? "#fff" : "#eef4fb"}" stroke="${COLORS[kind] ?? "#333"}" stroke-width="${kind === "initial" ? 3 : 1.5}"${isDashed ? ' stroke-dasharray="5 4"' : ""}/>`,
    `<text x="${middle}" y="${first}" font-size="14" text-anchor="middle" fill="#111">${escaped(cut(label, FITS.name))}</text>`,
    second === undefined || detail === undefined
      ? ""
      : `<text x="${middle}" y="${second}" font-size="11" text-anchor="middle" fill="#555">${escaped(cut(detail, FITS.detail))}</text>`,
    group === undefined
      ? ""
      : `<text x="${x + BOX.width - 6}" y="${y - 4}" font-size="10" text-anchor="end" fill="#3b6ea5">branch ${escaped(cut(group.label, FITS.name))}</text>`,
    "</g>",
  ].join("");
}

function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

/** Text and attribute values. Characters that XML cannot hold are replaced. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
