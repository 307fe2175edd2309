import {
  type ExecutionView,
  elapsed,
  executionKey,
  isUnfinished,
  type ListItems,
  listStatus,
  moneyOf,
  polledText,
  type RailStation,
  type RunView,
  railOf,
  type StateStop,
  shortCount,
  span,
  stateLabel,
  stopsIn,
  symbolOf,
  timeLeft,
  tokensOf,
  workedMs,
} from "@sluice/view";
import { cut, type Line, pad, widthOf } from "@sluice/view/text";
import { shortKey, textAt, timeAt } from "@sluice/view/words";

export interface ProgressBarOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  readonly maxRows: number;
  /** Epoch milliseconds. */
  readonly now: number;
  /** The key of the execution on screen, which ❯ marks. */
  readonly chosen?: string;
}

interface Drawing extends ProgressBarOptions {
  /** When questions expire, by the execution that asks. */
  readonly deadlines: ReadonlyMap<string, number>;
}

function deadlinesIn({ requests }: RunView): ReadonlyMap<string, number> {
  return new Map(
    requests.flatMap(({ runId, body }) => {
      const [executionId, until] = [textAt(body, "executionId"), timeAt(body, "until")];
      return until === undefined ? [] : [[executionKey(runId, executionId), until] as const];
    }),
  );
}

/**
 * How much is shown of active and chosen stops: everything in words, everything abbreviated, turn and time, the name. Others have
 * their word at the first level and a short name at the last one.
 */
type Level = 0 | 1 | 2 | 3;
const LEVELS: readonly Level[] = [0, 1, 2, 3];
const SHORT_NAME = 8;
/** UTF-16 units of an item's key. */
const ITEM_NAME = 32;
const BETWEEN = " › ";

/**
 * All states of a run with their symbols, active ones with details; branches of a fan-out are below each other. If there is
 * not enough room, details are shortened first, then states far from the active ones are omitted.
 */
export function progressBar(view: RunView, given: ProgressBarOptions): readonly Line[] {
  const { width, maxRows, chosen } = given;
  if (width < 1 || maxRows < 1) return [];
  const options = { ...given, deadlines: deadlinesIn(view) };
  const stations = railOf(view);
  const at = nearest(stations, view, chosen);
  const cellsAt = (level: Level): readonly Cell[] =>
    stations.map((station, index) => cellOf(station, level, index === at ? maxRows : 1, options));
  const rows =
    firstOf(LEVELS, (level) => placed(cellsAt(level), at, options)) ??
    firstOf(LEVELS.slice(1), (level) => windowOf(cellsAt(level), at, options)) ??
    cellsAt(3)[at]?.rows.slice(0, maxRows) ??
    [];
  return rows.map((line) => cut(line, width));
}

function firstOf<T, R>(items: readonly T[], result: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = result(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A station. `width` is the widest row, which is expensive to measure. What follows `isHeaded` is beside its first row, else beside all. */
interface Cell {
  readonly isHeaded?: boolean;
  readonly rows: readonly Line[];
  readonly width: number;
}

/** The cells in rows if they fit: around one with several rows side by side, others wrapped. `at` is the active one. */
function placed(cells: readonly Cell[], at: number, { width, maxRows }: Drawing): readonly Line[] | undefined {
  const near = cells[at];
  if (near === undefined || near.rows.length < 2) {
    const rows = rowsOf(cells, width);
    return rows.length <= maxRows && rows.every((row) => row.width <= width) ? rows.map(lineIn) : undefined;
  }
  if (widthOfRow(cells) > width) return undefined;
  const [before, after] = [cells.slice(0, at), cells.slice(at + 1)];
  const indent = " ".repeat(before.length === 0 ? 0 : widthOfRow(before) + BETWEEN.length);
  return near.rows.map((line, row) => {
    if (row > 0) return [span(indent), ...line];
    const first = near.isHeaded === true ? line : pad(line, near.width);
    return joined([...before, { rows: [first], width: near.width }, ...after]);
  });
}

/** As many stations around the active one as fit, and how many are omitted on either side. */
function windowOf(cells: readonly Cell[], at: number, options: Drawing): readonly Line[] | undefined {
  const last = cells.length - 1;
  const shown = (from: number, to: number): readonly Line[] | undefined => {
    if (from < 0 || to > last) return undefined;
    const before = from > 0 ? [more(from)] : [];
    const after = to < last ? [more(last - to)] : [];
    return placed([...before, ...cells.slice(from, to + 1), ...after], at - from + before.length, options);
  };
  let [from, to, best] = [at, at, shown(at, at)];
  for (let grew = best !== undefined; grew; ) {
    const right = shown(from, to + 1);
    if (right !== undefined) [to, best] = [to + 1, right];
    const left = shown(from - 1, to);
    if (left !== undefined) [from, best] = [from - 1, left];
    grew = right !== undefined || left !== undefined;
  }
  return best;
}

/** Wraps cells of one row each. */
function rowsOf(cells: readonly Cell[], width: number): readonly Cell[] {
  const rows: Cell[] = [];
  let row: Cell[] = [];
  for (const cell of cells) {
    if (row.length > 0 && widthOfRow([...row, cell]) > width) {
      rows.push({ rows: [joined(row)], width: widthOfRow(row) });
      row = [{ rows: [[span("› ", "dim"), ...lineIn(cell)]], width: cell.width + 2 }];
    } else row.push(cell);
  }
  return row.length === 0 ? rows : [...rows, { rows: [joined(row)], width: widthOfRow(row) }];
}

function lineIn({ rows }: Cell): Line {
  return rows[0] ?? [];
}

function joined(cells: readonly Cell[]): Line {
  return cells.flatMap((cell, index) => [...(index === 0 ? [] : [span(BETWEEN, "dim")]), ...lineIn(cell)]);
}

function widthOfRow(cells: readonly Cell[]): number {
  return cells.reduce((sum, { width }) => sum + width, Math.max(0, cells.length - 1) * BETWEEN.length);
}

function cell(rows: readonly Line[]): Cell {
  return { rows, width: Math.max(0, ...rows.map((row) => widthOf(row))) };
}

function more(count: number): Cell {
  return cell([[span(`… ${count} more`, "dim")]]);
}

/** Branches are below each other if there are several rows for them. */
function cellOf(station: RailStation, level: Level, rows: number, options: Drawing): Cell {
  if (station.kind === "stop") return cell([lineOf(station.stop, level, options)]);
  if (station.kind === "list") return { ...cell(listRows(station, level, rows, options)), isHeaded: true };
  if (rows > 1) return cell(bracketed(stopRows(station.stops, level, rows, options), "┌ "));
  const lines = station.stops.map((stop) => lineOf(stop, level, options));
  return cell([lines.flatMap((line, index) => [...(index === 0 ? [] : [span(" ∥ ", "dim")]), ...line])]);
}

/** Stops below each other; if not all fit, active ones come first. */
function stopRows(stops: readonly StateStop[], level: Level, rows: number, options: Drawing): readonly Line[] {
  const room = stops.length <= rows ? rows : rows - 1;
  const activeFirst = stops.toSorted((a, b) => Number(isActive(b)) - Number(isActive(a)));
  const chosen = new Set(activeFirst.slice(0, room));
  const shown = stops.filter((stop) => chosen.has(stop)).map((stop) => lineOf(stop, level, options));
  const omitted = stops.length - shown.length;
  return omitted === 0 ? shown : [...shown, lineIn(more(omitted))];
}

function bracketed(lines: readonly Line[], first: string): readonly Line[] {
  return lines.map((line, index) => {
    const isLast = index === lines.length - 1 && (index > 0 || first !== "┌ ");
    return [span(isLast ? "└ " : index === 0 ? first : "├ ", "dim"), ...line];
  });
}

/** A list's counts, and below them the items that are active or on screen, as far as there are rows. */
function listRows(
  { stop, items }: Extract<RailStation, { readonly kind: "list" }>,
  level: Level,
  rows: number,
  options: Drawing,
): readonly Line[] {
  const { executions } = items;
  const head = listLine(stop, items, level);
  const shown = executions.filter(({ key, status }) => key === options.chosen || isUnfinished(status));
  if (rows < 2 || shown.length === 0) return [head];
  const stops = shown.map(
    (execution): StateStop => ({ id: shortKey(execution.item ?? execution.stateId, ITEM_NAME), execution, visits: 1 }),
  );
  return [head, ...bracketed(stopRows(stops, level, rows - 1, options), "├ ")];
}

/** `▶ review 37/200 ✔35 ✖2` */
function listLine({ id, visits }: StateStop, items: ListItems, level: Level): Line {
  const { total, executions, completed, failed, others, active } = items;
  const ended = executions.length - active.length;
  const waiting = active.filter(({ status }) => status === "waiting").length;
  const { sign, style } = symbolOf(listStatus(items));
  const counts: readonly (readonly [count: number, status: ExecutionView["status"]])[] = [
    [completed, "completed"],
    [failed, "failed"],
    [others, "cancelled"],
    [waiting, "waiting"],
  ];
  return [
    span(sign, style),
    span(" "),
    span(stateLabel(id), executions.length === 0 ? "dim" : active.length > 0 ? "strong" : "plain"),
    ...(visits > 1 ? [span(` ×${visits}`, "dim")] : []),
    span(` ${ended}/${total}`, level === 0 ? "strong" : "plain"),
    ...counts.flatMap(([count, status]) => {
      const symbol = symbolOf(status);
      return count === 0 ? [] : [span(` ${symbol.sign}${count}`, symbol.style)];
    }),
  ];
}

function lineOf(stop: StateStop, level: Level, { now, chosen, deadlines }: Drawing): Line {
  const { execution, visits, id } = stop;
  const status = execution?.status ?? finalStatus(stop);
  const { sign, word, style } = symbolOf(status);
  const isChosen = chosen !== undefined && execution?.key === chosen;
  const isNear = isActive(stop) || isChosen;
  const name = stateLabel(id);
  const label = level === 3 && !isNear && widthOf(name) > SHORT_NAME ? cut([span(name)], SHORT_NAME) : [span(name)];
  const nameStyle = isChosen ? "selected" : status === undefined ? "dim" : isActive(stop) ? "strong" : "plain";
  // A state that waits or retries keeps its word as long as any word fits.
  const isTrouble = isActive(stop) && execution?.status !== "running" && execution?.status !== "sleeping" && level < 3;
  const facts = execution === undefined || !isNear || (isTrouble && level === 2) ? [] : factsOf(execution, level, now);
  const until = execution === undefined || !isNear || level === 3 ? undefined : deadlines.get(execution.key);
  const deadline = until === undefined ? [] : [deadlineText(until, level, now)];
  return [
    ...(isChosen ? [span("❯", "accent")] : []),
    span(sign, style),
    span(" "),
    ...label.map(({ text }) => span(text, nameStyle)),
    ...(visits > 1 ? [span(` ×${visits}`, "dim")] : []),
    ...(level === 0 || isTrouble ? [span(` ${word}`, style)] : []),
    ...[...deadline, ...facts].map((fact) => span(`${level === 0 ? " · " : " "}${fact}`, "dim")),
  ];
}

/** How a final state ended the run; undefined for other states, and for one that was not reached. */
function finalStatus({ final }: StateStop): ExecutionView["status"] | undefined {
  if (final?.reached !== true) return undefined;
  return final.outcome === "failed" || final.outcome === "cancelled" ? final.outcome : "completed";
}

/** Details of an execution: level 0 with words, 1 abbreviated, 2 only turn and time. */
function factsOf(execution: ExecutionView, level: Level, now: number): readonly string[] {
  const { attempt, turn, turnCap, usage, status, nextWakeAt } = execution;
  if (level > 2 || (level === 2 && !isUnfinished(status))) return [];
  const cap = turnCap === undefined ? "" : level === 0 ? ` of ${turnCap}` : `/${turnCap}`;
  const tokens = tokensOf(usage);
  const facts = [
    level === 0 ? polledText(execution) : "",
    level < 2 && attempt > 1 ? (level === 0 ? `attempt ${attempt}` : `a${attempt}`) : "",
    turn > 0 ? `${level === 0 ? "turn " : ""}${turn}${cap}` : "",
    level < 2 && tokens > 0 ? `${shortCount(tokens)}${level === 0 ? " tokens" : ""}` : "",
    level < 2 ? moneyOf(usage) : "",
    // A state that sleeps shows when it continues: the time that it worked does not change.
    nextWakeAt === undefined ? elapsed(workedMs(execution, now)) : wakeText(nextWakeAt, level, now),
  ];
  return facts.filter((fact) => fact !== "");
}

function wakeText(wakeAt: number, level: Level, now: number): string {
  if (wakeAt <= now) return "wakes";
  return `${level === 0 ? "wakes in " : ""}${timeLeft(wakeAt, now)}`;
}

function deadlineText(until: number, level: Level, now: number): string {
  if (until <= now) return "time is up";
  return `${timeLeft(until, now)}${level === 0 ? " left" : ""}`;
}

/** The stops of a station; of a list, one for each item that began. */
function executionsIn(station: RailStation): readonly Pick<StateStop, "id" | "execution">[] {
  if (station.kind === "children")
    return station.stops.flatMap(({ executions }) => executions.map((execution) => ({ id: "", execution })));
  if (station.kind !== "list" || station.items.executions.length === 0) return stopsIn(station);
  return station.items.executions.map((execution) => ({ id: station.stop.id, execution }));
}

function isActive({ execution }: Pick<StateStop, "execution">): boolean {
  return execution !== undefined && isUnfinished(execution.status);
}

/** The index of the active station, else of the chosen one, else of the last one. */
function nearest(stations: readonly RailStation[], { executions }: RunView, chosen: string | undefined): number {
  const indexOf = (matches: (stop: Pick<StateStop, "id" | "execution">) => boolean): number =>
    stations.findIndex((station) => executionsIn(station).some(matches));
  const chosenAt = chosen === undefined ? -1 : indexOf(({ execution }) => execution?.key === chosen);
  const activeAt = indexOf(isActive);
  const last = executions.at(-1);
  const lastAt = last === undefined ? -1 : indexOf(({ id }) => id === last.stateId);
  return Math.max(0, activeAt !== -1 ? activeAt : chosenAt !== -1 ? chosenAt : lastAt);
}
