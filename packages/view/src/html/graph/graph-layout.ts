import type { GraphPlan, NodePosition, Way } from "./graph-plan.ts";

export interface Box {
  readonly id: string;
  readonly place: NodePosition;
  readonly row: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A way as a path, and where to write what is said of it. */
export interface Line {
  readonly way: Way;
  readonly path: string;
  readonly at: { readonly x: number; readonly y: number };
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

const BOX_WIDTH = 188;
const BOX_HEIGHT = 56;
const BESIDE = 20;
const BELOW = 52;
/** Between ways that go past other boxes, at the sides. */
const LANE = 26;
const MARGIN = 10;

/** A way that goes past other boxes, at the left when it leads back. */
interface Passing {
  readonly way: Way;
  readonly from: Box;
  readonly to: Box;
  readonly lane: number;
}

/** Puts rows below each other; a way to the next row goes straight, any other along a lane of its own at the side. */
export function layoutOf({ rows, ways }: GraphPlan): GraphLayout {
  const index = new Map(rows.flatMap((row, at) => row.map(([id]) => [id, at] as const)));
  const goesOn = ({ from, to }: Way): boolean => (index.get(to) ?? 0) === (index.get(from) ?? 0) + 1;
  const goesBack = ({ from, to }: Way): boolean => (index.get(to) ?? 0) <= (index.get(from) ?? 0);
  const left = lanesOf(ways.filter(goesBack), index);
  const right = lanesOf(
    ways.filter((way) => !goesOn(way) && !goesBack(way)),
    index,
  );
  const beside = Math.max(1, ...rows.map((row) => row.length));
  const inner = beside * BOX_WIDTH + (beside - 1) * BESIDE;
  const offset = MARGIN + left.count * LANE;
  const width = offset + inner + right.count * LANE + MARGIN;
  const boxes = rows.flatMap((row, at) => boxesOf(row, at, offset + inner / 2));
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const lines = ways.flatMap((way): readonly Line[] => {
    const [from, to] = [byId.get(way.from), byId.get(way.to)];
    if (from === undefined || to === undefined) return [];
    if (goesOn(way)) return [straight(way, from, to)];
    const lane = (goesBack(way) ? left : right).of.get(way) ?? 0;
    return [
      goesBack(way)
        ? past({ way, from, to, lane }, offset - LANE * (lane + 0.6), -1)
        : past({ way, from, to, lane }, offset + inner + LANE * (lane + 0.6), 1),
    ];
  });
  const height = rows.length * BOX_HEIGHT + Math.max(0, rows.length - 1) * BELOW + 2 * MARGIN;
  return { width, height, boxes, lines };
}

function boxesOf(row: GraphPlan["rows"][number], at: number, middle: number): readonly Box[] {
  const width = row.length * BOX_WIDTH + (row.length - 1) * BESIDE;
  return row.map(([id, place], column) => ({
    id,
    place,
    row: at,
    x: middle - width / 2 + column * (BOX_WIDTH + BESIDE),
    y: MARGIN + at * (BOX_HEIGHT + BELOW),
    width: BOX_WIDTH,
    height: BOX_HEIGHT,
  }));
}

/** Short ways first, so that long ones go around them; two in one lane never meet. */
function lanesOf(
  ways: readonly Way[],
  index: ReadonlyMap<string, number>,
): { readonly of: ReadonlyMap<Way, number>; readonly count: number } {
  const reach = (way: Way): readonly [number, number] => {
    const [a, b] = [index.get(way.from) ?? 0, index.get(way.to) ?? 0];
    return [Math.min(a, b), Math.max(a, b)];
  };
  const length = (way: Way): number => reach(way)[1] - reach(way)[0];
  const taken: (readonly [number, number])[][] = [];
  const of = new Map<Way, number>();
  for (const way of ways.toSorted((a, b) => length(a) - length(b))) {
    const [low, high] = reach(way);
    const free = taken.findIndex((lane) => lane.every(([from, to]) => high < from || low > to));
    const lane = free === -1 ? taken.length : free;
    const held = taken[lane];
    if (held === undefined) taken.push([[low, high]]);
    else held.push([low, high]);
    of.set(way, lane);
  }
  return { of, count: taken.length };
}

function straight(way: Way, from: Box, to: Box): Line {
  const [x1, y1, x2, y2] = [from.x + from.width / 2, from.y + from.height, to.x + to.width / 2, to.y - 2];
  const bend = (y2 - y1) / 2;
  const path = `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  return { way, path, at: { x: (x1 + x2) / 2 + 8, y: (y1 + y2) / 2 + 4 } };
}

/** Out at one side, along the lane, in at the same side; what leaves and what comes in are apart. */
function past({ way, from, to, lane }: Passing, x: number, side: 1 | -1): Line {
  const edge = (box: Box): number => (side === 1 ? box.x + box.width : box.x);
  const apart = 8 + (lane % 3) * 5;
  const [x1, y1] = [edge(from), from.y + from.height / 2 + apart];
  const [x2, y2] = [edge(to) + side * 2, to.y + to.height / 2 - apart];
  const round = 8;
  const down = y2 > y1 ? 1 : -1;
  const path =
    `M${x1} ${y1}H${x - side * round}Q${x} ${y1} ${x} ${y1 + down * round}` +
    `V${y2 - down * round}Q${x} ${y2} ${x - side * round} ${y2}H${x2}`;
  return { way, path, at: { x: x - 4, y: (y1 + y2) / 2 } };
}
