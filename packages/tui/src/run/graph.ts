import {
  type Hop,
  isUnfinished,
  type RunView,
  type StateStop,
  type Station,
  span,
  stateLabel,
  stationsOf,
  symbolOf,
} from "@sluice/view";
import { cut, type Line, pad, type Span, type Style } from "@sluice/view/text";
import { count } from "@sluice/view/words";

/** Least columns of a box beside another. */
const MIN_SIDE_BOX = 14;
const MAX_BOX = 56;
/** Columns below which a state has no box. */
const MIN_BOX = 12;

/** A route from a state, and how often it was taken. */
interface Route {
  readonly to: string;
  readonly taken: number;
}

/**
 * The pipeline as boxes below each other, branches side by side if they fit. `━▶` marks routes that were taken, `┄▷` possible
 * ones, `↺` routes back to an earlier state.
 */
export function graph(view: RunView, { width }: { readonly width: number }): readonly Line[] {
  if (width < 1) return [];
  const stations = inOrder(stationsOf(view), view.initial);
  const order = new Map<string, number>();
  for (const [index, station] of stations.entries()) for (const { id } of stopsIn(station)) order.set(id, index);
  const lines = stations.flatMap((station, index) => draw({ view, order, index, station, width }, stations));
  return lines.map((line) => cut(line, width));
}

interface Drawing {
  readonly view: RunView;
  /** The station index of each state. */
  readonly order: ReadonlyMap<string, number>;
  readonly index: number;
  readonly station: Station;
  readonly width: number;
}

function draw(drawing: Drawing, stations: readonly Station[]): readonly Line[] {
  const { station, index, view, width } = drawing;
  if (station.kind === "stop")
    return [...boxOf(station.stop, view, width), ...routesOf(drawing, station.stop, stations)];
  const { fork, stops } = station;
  const style: Style = fork.joined ? "accent" : "dim";
  const next = stations[index + 1];
  const joinsNext = next !== undefined && stopsIn(next).some(({ id }) => id === fork.join);
  const joined = joinsNext
    ? down(fork.joined, "joined")
    : [span(`${fork.joined ? "  ┗━▶" : "  └┄▷"} joined in ${stateLabel(fork.join)}`, style)];
  return [...siblings(stops, view, width), joined];
}

/** Boxes side by side if they fit, else below each other with a bracket. */
function siblings(stops: readonly StateStop[], view: RunView, width: number): readonly Line[] {
  const each = Math.min(MAX_BOX, Math.floor((width - stops.length + 1) / stops.length));
  if (each < MIN_SIDE_BOX) {
    const rows = stops.flatMap((stop) => boxOf(stop, view, width - 2));
    return rows.map((line, row) => {
      const corner = row === 0 ? "┌ " : row === rows.length - 1 ? "└ " : "│ ";
      return [span(corner, "dim"), ...line];
    });
  }
  const boxes = stops.map((stop) => boxOf(stop, view, each));
  const height = Math.max(...boxes.map((box) => box.length));
  return Array.from({ length: height }, (_, row) =>
    boxes.flatMap((box, index) => [...(index === 0 ? [] : [span(" ")]), ...pad(box[row] ?? [], each)]),
  );
}

/** A state in its box, which is heavy while the state is active. */
function boxOf({ id, execution, visits }: StateStop, { initial, states }: RunView, width: number): readonly Line[] {
  const { sign, word, style } = symbolOf(execution?.status);
  const { turnCap, kind = "" } = states.find((state) => state.id === id) ?? {};
  const facts = [
    ...(visits > 1 ? [`×${visits}`] : []),
    ...(execution !== undefined && execution.turns > 0 ? [count(execution.turns, "turn")] : []),
    ...(execution === undefined && turnCap !== undefined ? [`turn cap ${turnCap}`] : []),
    ...(kind === "" || kind === "agent" ? [] : [stateLabel(kind)]),
    ...(id === initial ? ["starts here"] : []),
  ];
  const text: Line = [
    span(`${sign} `, style),
    span(stateLabel(id), execution === undefined ? "dim" : "strong"),
    span(` ${word}`, style),
    ...facts.map((fact) => span(` · ${fact}`, "dim")),
  ];
  if (width < MIN_BOX) return [cut(text, width)];
  const inside = Math.min(MAX_BOX, width) - 4;
  const frame: Style = execution === undefined ? "dim" : isUnfinished(execution.status) ? "accent" : "plain";
  const [tl, h, tr, v, bl, br] =
    execution === undefined ? "╭┄╮┆╰╯" : isUnfinished(execution.status) ? "┏━┓┃┗┛" : "╭─╮│╰╯";
  const edge = (left = "", right = ""): Line => [span(left + (h ?? "").repeat(inside + 2) + right, frame)];
  return [edge(tl, tr), [span(`${v} `, frame), ...pad(text, inside), span(` ${v}`, frame)], edge(bl, br)];
}

function routesOf(drawing: Drawing, { id, execution }: StateStop, stations: readonly Station[]): readonly Line[] {
  const { view, index, order } = drawing;
  const hops = view.path.filter((hop) => hop.from === id);
  const { targets } = view.states.find((state) => state.id === id) ?? {};
  const next = new Set(stations[index + 1] === undefined ? [] : stopsIn(stations[index + 1]).map((stop) => stop.id));
  const lines: Line[] = [];
  const forks = hops.filter((hop) => hop.choice === "fanOut");
  const forked = new Set(forks.flatMap((hop) => [...hop.to, ...(hop.join === undefined ? [] : [hop.join])]));
  /** Whether the run took a route to the next station; undefined if there is none. */
  let takesNext: boolean | undefined;
  for (const { to, taken } of routeCounts(hops, targets ?? [], forked)) {
    const position = order.get(to);
    if (next.has(to)) takesNext = (takesNext ?? false) || taken > 0;
    else lines.push(routeLine(to, taken, position !== undefined && position <= index));
  }
  for (const hop of forks) {
    const isNext = hop.to.every((to) => next.has(to));
    if (isNext) takesNext = true;
    else lines.push([span("  ┗━▶ ", "accent"), span(`${hop.to.map(stateLabel).join(" ∥ ")} side by side`, "accent")]);
  }
  lines.push(...endings(hops));
  if (targets === undefined && takesNext === undefined && hops.length === 0 && stations.length > 1)
    lines.push([span(`  ┆ ${execution === undefined ? "its routes are not declared" : "not decided yet"}`, "dim")]);
  return takesNext === undefined ? lines : [...lines, down(takesNext, forks.length > 0 ? "side by side" : "")];
}

function routeCounts(hops: readonly Hop[], targets: readonly string[], forked: ReadonlySet<string>): readonly Route[] {
  const counts = new Map<string, number>(targets.filter((to) => !forked.has(to)).map((to) => [to, 0]));
  for (const hop of hops) if (hop.choice === "to") for (const to of hop.to) counts.set(to, (counts.get(to) ?? 0) + 1);
  return [...counts].map(([to, taken]) => ({ to, taken }));
}

function routeLine(to: string, taken: number, back: boolean): Line {
  const times = taken > 1 ? ` ×${taken}` : "";
  const style: Style = taken > 0 ? "accent" : "dim";
  const arrow = taken > 0 ? "  ┗━▶ " : "  └┄▷ ";
  return [span(arrow, style), span(`${back ? "↺ back to " : ""}${stateLabel(to)}${times}`, style)];
}

function endings(hops: readonly Hop[]): readonly Line[] {
  return hops.flatMap(({ choice }): Line[] => {
    const end: Span | undefined =
      choice === "done"
        ? span("✔ the run is done", "good")
        : choice === "fail"
          ? span("✖ the run fails", "bad")
          : choice === "cancel"
            ? span("⊘ the run is cancelled", "bad")
            : undefined;
    return end === undefined ? [] : [[span("  ┗━▶ ", "accent"), end]];
  });
}

function down(taken: boolean, word: string): Line {
  const style: Style = taken ? "accent" : "dim";
  return [span(taken ? "  ▼" : "  ▽", style), ...(word === "" ? [] : [span(` ${word}`, "dim")])];
}

function inOrder(stations: readonly Station[], initial: string | undefined): readonly Station[] {
  const first = stations.findIndex((station) => stopsIn(station).some(({ id }) => id === initial));
  const start = stations[first];
  return start === undefined ? stations : [start, ...stations.filter((station) => station !== start)];
}

function stopsIn(station: Station | undefined): readonly StateStop[] {
  if (station === undefined) return [];
  return station.kind === "stop" ? [station.stop] : station.stops;
}
