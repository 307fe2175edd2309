import type { Edge, GraphNode, GraphPlan } from "./graph-plan.ts";

/** A node with the position of its box in pixels. */
export interface Box {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
}

/** An edge as an SVG path, and the position of its label. */
export interface EdgePath {
  readonly edge: Edge;
  readonly path: string;
  readonly label: { readonly x: number; readonly y: number };
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly paths: readonly EdgePath[];
}

export const BOX_WIDTH = 188;
export const BOX_HEIGHT = 56;
const COLUMN_GAP = 20;
const ROW_GAP = 52;
const LANE_WIDTH = 26;
const MARGIN = 10;
const CORNER = 8;

/** Rows from top to bottom. Edges to the next row are curves; longer ones have lanes at the right, those back at the left. */
export function layoutOf({ rows, edges }: GraphPlan): GraphLayout {
  const rowOf = new Map(rows.flatMap((row, index) => row.map(({ id }) => [id, index] as const)));
  const span = ({ from, to }: Edge): number => (rowOf.get(to) ?? 0) - (rowOf.get(from) ?? 0);
  const left = lanesOf(
    edges.filter((edge) => span(edge) <= 0).toSorted((a, b) => span(b) - span(a)),
    rowOf,
  );
  const right = lanesOf(
    edges.filter((edge) => span(edge) > 1).toSorted((a, b) => span(a) - span(b)),
    rowOf,
  );
  const columns = Math.max(1, ...rows.map((row) => row.length));
  const inner = columns * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP;
  const offset = MARGIN + left.count * LANE_WIDTH;
  const boxes = rows.flatMap((nodes, row) => {
    const start = offset + (inner - nodes.length * (BOX_WIDTH + COLUMN_GAP) + COLUMN_GAP) / 2;
    const y = MARGIN + row * (BOX_HEIGHT + ROW_GAP);
    return nodes.map((node, column) => ({ node, x: start + column * (BOX_WIDTH + COLUMN_GAP), y }));
  });
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const paths = edges.flatMap((edge): readonly EdgePath[] => {
    const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
    if (from === undefined || to === undefined) return [];
    if (span(edge) === 1) return [curve(edge, from, to)];
    const isBack = span(edge) <= 0;
    const lane = (isBack ? left : right).of.get(edge) ?? 0;
    const distance = LANE_WIDTH * (lane + 0.6);
    return [detour({ edge, from, to, lane }, isBack ? offset - distance : offset + inner + distance, isBack ? -1 : 1)];
  });
  return {
    width: offset + inner + right.count * LANE_WIDTH + MARGIN,
    height: rows.length * (BOX_HEIGHT + ROW_GAP) - Math.min(rows.length, 1) * ROW_GAP + 2 * MARGIN,
    boxes,
    paths,
  };
}

/** Gives each edge the first lane in which no earlier edge overlaps it. */
function lanesOf(
  edges: readonly Edge[],
  rowOf: ReadonlyMap<string, number>,
): { readonly of: ReadonlyMap<Edge, number>; readonly count: number } {
  const lanes: (readonly [low: number, high: number])[][] = [];
  const of = new Map<Edge, number>();
  for (const edge of edges) {
    const ends = [rowOf.get(edge.from) ?? 0, rowOf.get(edge.to) ?? 0];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const free = lanes.findIndex((lane) => lane.every(([from, to]) => high < from || low > to));
    const lane = free === -1 ? lanes.push([]) - 1 : free;
    lanes[lane]?.push([low, high]);
    of.set(edge, lane);
  }
  return { of, count: lanes.length };
}

function curve(edge: Edge, from: Box, to: Box): EdgePath {
  const [x1, y1, x2, y2] = [from.x + BOX_WIDTH / 2, from.y + BOX_HEIGHT, to.x + BOX_WIDTH / 2, to.y - 2];
  const middle = (y1 + y2) / 2;
  const path = `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
  return { edge, path, label: { x: (x1 + x2) / 2 + 8, y: middle + 4 } };
}

interface Detour {
  readonly edge: Edge;
  readonly from: Box;
  readonly to: Box;
  readonly lane: number;
}

/** Leaves and enters at the same side, at different heights, and follows a lane at `x`. */
function detour({ edge, from, to, lane }: Detour, x: number, side: 1 | -1): EdgePath {
  const edgeOf = (box: Box): number => (side === 1 ? box.x + BOX_WIDTH : box.x);
  const apart = 8 + (lane % 3) * 5;
  const [y1, y2] = [from.y + BOX_HEIGHT / 2 + apart, to.y + BOX_HEIGHT / 2 - apart];
  const down = y2 > y1 ? CORNER : -CORNER;
  const turn = x - side * CORNER;
  const path =
    `M${edgeOf(from)} ${y1}H${turn}Q${x} ${y1} ${x} ${y1 + down}` +
    `V${y2 - down}Q${x} ${y2} ${turn} ${y2}H${edgeOf(to) + side * 2}`;
  return { edge, path, label: { x: x - 4, y: (y1 + y2) / 2 } };
}
