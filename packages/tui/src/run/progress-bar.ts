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
} from "@sluice/view";
import { cut, type Line, widthOf } from "@sluice/view/text";

export interface ProgressBarOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  readonly maxRows: number;
  /** Epoch milliseconds. */
  readonly now: number;
  /** The key of the execution on screen, which ❯ marks. */
  readonly chosen?: string;
}

/** How much a stop is shortened; 0 shows everything. `near` applies to active and chosen stops, `far` to all others. */
interface Detail {
  readonly near: 0 | 1 | 2 | 3;
  readonly far: 0 | 1 | 2;
}
const DETAILS: readonly Detail[] = [
  { near: 0, far: 0 },
  { near: 0, far: 1 },
  { near: 1, far: 1 },
  { near: 2, far: 1 },
  { near: 3, far: 1 },
];
const LEAST: Detail = { near: 3, far: 2 };
/** Details if not all stations fit. */
const WINDOWS: readonly Detail[] = [{ near: 1, far: 1 }, { near: 2, far: 1 }, LEAST];
const SHORT_NAME = 8;
const BETWEEN = " › ";

/**
 * All states of a run with their symbols, active ones with details; branches of a fan-out are below each other. If there is
 * not enough room, details are shortened first, then states far from the active ones are omitted.
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
  /** The index of the active or chosen station, and the station. */
  readonly at: number;
  readonly near: Station | undefined;
}

/** Spans with their width, which is expensive to measure. */
interface Cell {
  readonly line: Line;
  readonly width: number;
}
/** Lays out cells if they fit; `index` is the cell of the active station. */
type Fit<T> = (cells: readonly Cell[], index: number) => T | undefined;

/** Stations in a row, wrapped into up to `maxRows` rows. */
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

/** The branches of the active fork below each other; the other stations are in the first row. */
function besideFork(drawing: Drawing, stops: readonly StateStop[]): readonly Line[] {
  const { stations, at, width, maxRows } = drawing;
  const fitTo = (detail: Detail): Fit<readonly Line[]> => {
    const block = blockOf(stops, maxRows, detail, drawing);
    const widest = Math.max(...block.map((cell) => cell.width));
    return (cells, index) => {
      const [left, right] = [cells.slice(0, index), cells.slice(index + 1)];
      const before = left.length === 0 ? 0 : widthOfRow(left) + BETWEEN.length;
      const after = right.length === 0 ? 0 : widthOfRow(right) + BETWEEN.length;
      if (before + widest + after > width) return undefined;
      return block.map(({ line, width: lineWidth }, row): Line => {
        if (row > 0) return [span(" ".repeat(before)), ...line];
        const start = before === 0 ? [] : [...joined(left), span(BETWEEN, "dim")];
        const end = after === 0 ? [] : [span(" ".repeat(widest - lineWidth)), span(BETWEEN, "dim"), ...joined(right)];
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

/** As many stations around the active one as fit, and how many are omitted on either side. */
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

/** Wraps cells into rows. */
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
  return { line, width: widthOf(line) };
}

function more(count: number): Cell {
  return cell([span(`… ${count} more`, "dim")]);
}

type LineOptions = Pick<ProgressBarOptions, "now" | "chosen">;

function inline(station: Station | undefined, detail: Detail, options: LineOptions): Cell {
  if (station === undefined) return cell([]);
  if (station.kind === "stop") return cell(lineOf(station.stop, detail, options));
  const lines = station.stops.map((stop) => lineOf(stop, detail, options));
  return cell(lines.flatMap((line, index) => (index === 0 ? line : [span(" ∥ ", "dim"), ...line])));
}

/** Branches below each other; if not all fit, active ones come first. */
function blockOf(stops: readonly StateStop[], rows: number, detail: Detail, options: LineOptions): readonly Cell[] {
  const room = stops.length <= rows ? rows : rows - 1;
  const activeFirst = stops.toSorted((a, b) => Number(isActive(b)) - Number(isActive(a)));
  const chosen = new Set(activeFirst.slice(0, room));
  const shown = stops.filter((stop) => chosen.has(stop)).map((stop) => cell(lineOf(stop, detail, options)));
  const omitted = stops.length - shown.length;
  const cells = omitted === 0 ? shown : [...shown, more(omitted)];
  return cells.map(({ line, width }, index) => {
    const corner = cells.length === 1 ? "╶ " : index === 0 ? "┌ " : index === cells.length - 1 ? "└ " : "├ ";
    return { line: [span(corner, "dim"), ...line], width: width + corner.length };
  });
}

function lineOf(stop: StateStop, detail: Detail, { now, chosen }: LineOptions): Line {
  const { execution, visits, id } = stop;
  const { sign, word, style } = symbolOf(execution?.status);
  const isChosen = chosen !== undefined && execution?.key === chosen;
  const name = stateLabel(id);
  const level = isActive(stop) || isChosen ? detail.near : detail.far + 2;
  const label = level === 4 && widthOf(name) > SHORT_NAME ? cut([span(name)], SHORT_NAME) : [span(name)];
  const nameStyle = isChosen ? "selected" : execution === undefined ? "dim" : isActive(stop) ? "strong" : "plain";
  const head: Line = [
    ...(isChosen ? [span("❯", "accent")] : []),
    span(sign, style),
    span(" "),
    ...label.map(({ text }) => span(text, nameStyle)),
  ];
  const visitCount = visits > 1 ? [span(` ×${visits}`, "dim")] : [];
  const isFar = level === 2 && detail.far === 0 && !isActive(stop);
  // A state that waits or retries keeps its word as long as any word fits.
  const isTrouble = (level === 1 || level === 2) && isActive(stop) && execution?.status !== "running";
  const status = level === 0 || isFar || isTrouble ? [span(` ${word}`, style)] : [];
  const facts = execution === undefined || (isTrouble && level === 2) ? [] : factsOf(execution, level, now);
  return [
    ...head,
    ...visitCount,
    ...status,
    ...facts.map((fact) => span(`${level === 0 ? " · " : " "}${fact}`, "dim")),
  ];
}

/** Details of an execution: level 0 with words, 1 abbreviated, 2 only turn and time. */
function factsOf(execution: ExecutionView, level: number, now: number): readonly string[] {
  const { attempt, turn, turnCap, usage, startedAt, endedAt, status } = execution;
  if (level > 2 || (level === 2 && !isUnfinished(status))) return [];
  const cap = turnCap === undefined ? "" : level === 0 ? ` of ${turnCap}` : `/${turnCap}`;
  const tokens = tokensOf(usage);
  const facts = [
    level < 2 && attempt > 1 ? (level === 0 ? `attempt ${attempt}` : `a${attempt}`) : "",
    turn > 0 ? `${level === 0 ? "turn " : ""}${turn}${cap}` : "",
    level < 2 && tokens > 0 ? `${shortCount(tokens)}${level === 0 ? " tokens" : ""}` : "",
    level < 2 ? moneyOf(usage) : "",
    elapsed((endedAt ?? now) - startedAt),
  ];
  return facts.filter((fact) => fact !== "");
}

function isActive({ execution }: StateStop): boolean {
  return execution !== undefined && isUnfinished(execution.status);
}

/** The index of the active station, else of the chosen one, else of the last one. */
function nearest(stations: readonly Station[], { executions }: RunView, chosen: string | undefined): number {
  const indexOf = (matches: (stop: StateStop) => boolean): number =>
    stations.findIndex((station) => (station.kind === "stop" ? matches(station.stop) : station.stops.some(matches)));
  const chosenAt = chosen === undefined ? -1 : indexOf(({ execution }) => execution?.key === chosen);
  const activeAt = indexOf(isActive);
  const last = executions.at(-1);
  const lastAt = last === undefined ? -1 : indexOf(({ id }) => id === last.stateId);
  return Math.max(0, activeAt !== -1 ? activeAt : chosenAt !== -1 ? chosenAt : lastAt);
}
