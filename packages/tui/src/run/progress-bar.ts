import {
  type ExecutionView,
  elapsed,
  isUnfinished,
  moneyOf,
  type RunView,
  type StateStop,
  type Station,
  shortCount,
  span,
  stateLabel,
  stationsOf,
  symbolOf,
  tokensOf,
  widthOfLine,
} from "@sluice/view";
import { cut, type Line, widthOf } from "@sluice/view/text";

export interface ProgressBarOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  readonly maxRows: number;
  /** Epoch milliseconds. */
  readonly now: number;
  /** The key of the execution whose transcript is shown; it has a ❯ in front. */
  readonly chosen?: string;
}

/** How much is said of a stop: 0 is everything. What somebody looks at is `near`. */
interface Detail {
  readonly near: 0 | 1 | 2 | 3;
  readonly far: 0 | 1 | 2;
}
/** From everything to the least that still names a state. */
const DETAILS: readonly Detail[] = [
  { near: 0, far: 0 },
  { near: 0, far: 1 },
  { near: 1, far: 1 },
  { near: 2, far: 1 },
  { near: 3, far: 1 },
];
const LEAST: Detail = { near: 3, far: 2 };
/** What is said where not all stations fit. */
const WINDOWS: readonly Detail[] = [{ near: 1, far: 1 }, { near: 2, far: 1 }, LEAST];
const SHORT_NAME = 8;
const BETWEEN = " › ";

/**
 * Every state of a run with its sign, and of those at work what they do. Siblings stand below each other, side by side with
 * what comes before and after. What does not fit is told in fewer words, then left out far from what is at work. Never wider
 * than `width` nor taller than `maxRows`.
 */
export function progressBar(view: RunView, options: ProgressBarOptions): readonly Line[] {
  const { width, maxRows } = options;
  if (width < 1 || maxRows < 1) return [];
  const stations = stationsOf(view);
  const at = nearest(stations, view, options.chosen);
  const near = stations[at];
  const drawing: Drawing = { ...options, stations, at, near };
  const lines = near?.kind === "fork" && maxRows > 1 ? besideFork(drawing, near.stops) : inRows(drawing);
  return lines.slice(0, maxRows).map((line) => cut(line, width));
}

interface Drawing extends ProgressBarOptions {
  readonly stations: readonly Station[];
  /** The index of what is at work, and it. */
  readonly at: number;
  readonly near: Station | undefined;
}

/** Spans with their width, which costs more than all else here and is taken once. */
interface Cell {
  readonly line: Line;
  readonly width: number;
}
type Fit<T> = (cells: readonly Cell[], place: number) => T | undefined;

/** Stations as cells of one row each, over as many rows as there are. */
function inRows(drawing: Drawing): readonly Line[] {
  const { stations, width, maxRows, near } = drawing;
  const fit = (cells: readonly Cell[]): readonly Line[] | undefined => {
    const rows = rowsOf(cells, width);
    return rows.length <= maxRows && rows.every((row) => row.width <= width) ? rows.map(({ line }) => line) : undefined;
  };
  for (const detail of DETAILS) {
    const rows = fit(stations.map((station) => inline(station, detail, drawing)));
    if (rows !== undefined) return rows;
  }
  for (const detail of WINDOWS) {
    const rows = windowOf(drawing, detail, fit);
    if (rows !== undefined) return rows;
  }
  return [inline(near, LEAST, drawing).line];
}

/** The siblings at work below each other, what comes before and after in the first row. */
function besideFork(drawing: Drawing, stops: readonly StateStop[]): readonly Line[] {
  const { stations, at, width, maxRows } = drawing;
  const fitTo = (detail: Detail): Fit<readonly Line[]> => {
    const block = blockOf(stops, maxRows, detail, drawing);
    const wide = Math.max(...block.map((cell) => cell.width));
    return (cells, place) => {
      const [left, right] = [cells.slice(0, place), cells.slice(place + 1)];
      const before = left.length === 0 ? 0 : widthOfRow(left) + BETWEEN.length;
      const after = right.length === 0 ? 0 : widthOfRow(right) + BETWEEN.length;
      if (before + wide + after > width) return undefined;
      return block.map(({ line, width: own }, row): Line => {
        if (row > 0) return [span(" ".repeat(before)), ...line];
        const start = before === 0 ? [] : [...joined(left), span(BETWEEN, "dim")];
        const end = after === 0 ? [] : [span(" ".repeat(wide - own)), span(BETWEEN, "dim"), ...joined(right)];
        return [...start, ...line, ...end];
      });
    };
  };
  for (const detail of DETAILS) {
    const cells = stations.map((station) => inline(station, detail, drawing));
    const rows = fitTo(detail)(cells, at);
    if (rows !== undefined) return rows;
  }
  for (const detail of WINDOWS) {
    const rows = windowOf(drawing, detail, fitTo(detail));
    if (rows !== undefined) return rows;
  }
  return blockOf(stops, maxRows, LEAST, drawing).map(({ line }) => line);
}

/** As many stations around what is at work as fit, and how many are left out on either side. */
function windowOf<T>({ stations, at, ...drawing }: Drawing, detail: Detail, fit: Fit<T>): T | undefined {
  const cells = stations.map((station) => inline(station, detail, drawing));
  const shown = (from: number, to: number): T | undefined => {
    const before = from > 0 ? [more(from)] : [];
    const after = to < cells.length - 1 ? [more(cells.length - 1 - to)] : [];
    return fit([...before, ...cells.slice(from, to + 1), ...after], at - from + before.length);
  };
  let [from, to] = [at, at];
  let best = shown(from, to);
  for (let grew = best !== undefined; grew; ) {
    grew = false;
    for (const [left, right] of [
      [from, to + 1],
      [from - 1, to],
    ] as const) {
      const wider = left < 0 || right >= cells.length ? undefined : shown(left, right);
      if (wider === undefined) continue;
      [from, to, best, grew] = [left, right, wider, true];
    }
  }
  return best;
}

/** Cells one after the other, a new row where one does not fit any more. */
function rowsOf(cells: readonly Cell[], width: number): readonly Cell[] {
  const rows: Cell[] = [];
  let row: Cell[] = [];
  for (const cell of cells) {
    if (row.length > 0 && widthOfRow([...row, cell]) > width) {
      rows.push({ line: joined(row), width: widthOfRow(row) });
      row = [{ line: [span("› ", "dim"), ...cell.line], width: cell.width + 2 }];
    } else row.push(cell);
  }
  return row.length === 0 ? rows : [...rows, { line: joined(row), width: widthOfRow(row) }];
}

function joined(cells: readonly Cell[]): Line {
  return cells.flatMap(({ line }, index) => (index === 0 ? line : [span(BETWEEN, "dim"), ...line]));
}

function widthOfRow(cells: readonly Cell[]): number {
  return cells.reduce((sum, { width }) => sum + width, Math.max(0, cells.length - 1) * BETWEEN.length);
}

function cell(line: Line): Cell {
  return { line, width: widthOfLine(line) };
}

function more(count: number): Cell {
  return cell([span(`… ${count} more`, "dim")]);
}

type Words = Pick<ProgressBarOptions, "now" | "chosen">;

function inline(station: Station | undefined, detail: Detail, words: Words): Cell {
  if (station === undefined) return cell([]);
  if (station.kind === "stop") return cell(lineOf(station.stop, detail, words));
  const lines = station.stops.map((stop) => lineOf(stop, detail, words));
  return cell(lines.flatMap((line, index) => (index === 0 ? line : [span(" ∥ ", "dim"), ...line])));
}

/** Siblings below each other; those at work first where there is not room for all. */
function blockOf(stops: readonly StateStop[], rows: number, detail: Detail, words: Words): readonly Cell[] {
  const room = stops.length <= rows ? rows : rows - 1;
  const byWork = stops.toSorted((a, b) => Number(isAtWork(b)) - Number(isAtWork(a)));
  const chosen = new Set(byWork.slice(0, room));
  const shown = stops.filter((stop) => chosen.has(stop)).map((stop) => cell(lineOf(stop, detail, words)));
  const left = stops.length - shown.length;
  const cells = left === 0 ? shown : [...shown, more(left)];
  return cells.map(({ line, width }, index) => {
    const corner = cells.length === 1 ? "╶ " : index === 0 ? "┌ " : index === cells.length - 1 ? "└ " : "├ ";
    return { line: [span(corner, "dim"), ...line], width: width + corner.length };
  });
}

function lineOf(stop: StateStop, detail: Detail, { now, chosen }: Words): Line {
  const { execution, visits, id } = stop;
  const { sign, word, style } = symbolOf(execution?.status);
  const isChosen = chosen !== undefined && execution?.key === chosen;
  const name = stateLabel(id);
  const level = isAtWork(stop) || isChosen ? detail.near : detail.far + 2;
  const named = level === 4 && widthOf(name) > SHORT_NAME ? cut([span(name)], SHORT_NAME) : [span(name)];
  const nameStyle = isChosen ? "selected" : execution === undefined ? "dim" : isAtWork(stop) ? "strong" : "plain";
  const head: Line = [
    ...(isChosen ? [span("❯", "accent")] : []),
    span(sign, style),
    span(" "),
    ...named.map(({ text }) => span(text, nameStyle)),
  ];
  const often = visits > 1 ? [span(` ×${visits}`, "dim")] : [];
  const isFar = level === 2 && detail.far === 0 && !isAtWork(stop);
  // That somebody is waited for is said as long as there is room for any word.
  const isTrouble = (level === 1 || level === 2) && isAtWork(stop) && execution?.status !== "running";
  const said = level === 0 || isFar || isTrouble ? [span(` ${word}`, style)] : [];
  const facts = execution === undefined || (isTrouble && level === 2) ? [] : factsOf(execution, level, now);
  return [...head, ...often, ...said, ...facts.map((fact) => span(`${level === 0 ? " · " : " "}${fact}`, "dim"))];
}

/** What an execution does: at level 0 with words, at 1 in short, at 2 how far it is and for how long. */
function factsOf(execution: ExecutionView, level: number, now: number): readonly string[] {
  const { attempt, turn, turnCap, usage, startedAt, endedAt, status } = execution;
  if (level > 2 || (level === 2 && !isUnfinished(status))) return [];
  const of = turnCap === undefined ? "" : level === 0 ? ` of ${turnCap}` : `/${turnCap}`;
  const tokens = tokensOf(usage);
  const facts = [
    level < 2 && attempt > 1 ? (level === 0 ? `attempt ${attempt}` : `a${attempt}`) : "",
    turn > 0 ? `${level === 0 ? "turn " : ""}${turn}${of}` : "",
    level < 2 && tokens > 0 ? `${shortCount(tokens)}${level === 0 ? " tokens" : ""}` : "",
    level < 2 ? moneyOf(usage) : "",
    elapsed((endedAt ?? now) - startedAt),
  ];
  return facts.filter((fact) => fact !== "");
}

function isAtWork({ execution }: StateStop): boolean {
  return execution !== undefined && isUnfinished(execution.status);
}

/** What the rail is about: what is at work, else what is chosen, else what was last. */
function nearest(stations: readonly Station[], { executions }: RunView, chosen: string | undefined): number {
  const holds = (which: (stop: StateStop) => boolean): number =>
    stations.findIndex((station) => (station.kind === "stop" ? which(station.stop) : station.stops.some(which)));
  const picked = chosen === undefined ? -1 : holds(({ execution }) => execution?.key === chosen);
  const working = holds(isAtWork);
  const last = executions.at(-1);
  const ended = last === undefined ? -1 : holds(({ id }) => id === last.stateId);
  return Math.max(0, working !== -1 ? working : picked !== -1 ? picked : ended);
}
