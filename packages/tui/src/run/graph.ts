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

/** Columns a box needs to be worth drawing beside another. */
const NARROWEST_BOX = 14;
const WIDEST_BOX = 56;
/** A box that is no box any more. */
const NARROWEST = 12;

/** A way from a state: where its routes may go, or did. */
interface Way {
  readonly to: string;
  readonly taken: number;
}

/**
 * The pipeline as boxes below each other, siblings side by side where there is room. Ways that were taken are drawn with
 * `━▶` and say how often, those that may be taken with `┄▷`; one that leads back is `↺`. Never wider than `width`.
 */
export function graph(view: RunView, { width }: { readonly width: number }): readonly Line[] {
  if (width < 1) return [];
  const stations = inOrder(stationsOf(view), view.initial);
  const order = new Map<string, number>();
  for (const [index, station] of stations.entries()) for (const { id } of stopsIn(station)) order.set(id, index);
  const lines = stations.flatMap((station, index) => drawn({ view, order, index, station, width }, stations));
  return lines.map((line) => cut(line, width));
}

interface Place {
  readonly view: RunView;
  /** At which station a state stands. */
  readonly order: ReadonlyMap<string, number>;
  readonly index: number;
  readonly station: Station;
  readonly width: number;
}

function drawn(place: Place, stations: readonly Station[]): readonly Line[] {
  const { station, index, view, width } = place;
  if (station.kind === "stop") return [...boxOf(station.stop, view, width), ...waysOut(place, station.stop, stations)];
  const { fork, stops } = station;
  const style: Style = fork.joined ? "accent" : "dim";
  const next = stations[index + 1];
  const goesOn = next !== undefined && stopsIn(next).some(({ id }) => id === fork.join);
  const joined = goesOn
    ? down(fork.joined, "joined")
    : [span(`${fork.joined ? "  ┗━▶" : "  └┄▷"} joined in ${stateLabel(fork.join)}`, style)];
  return [...siblings(stops, view, width), joined];
}

/** Boxes beside each other where each gets enough room, else below each other behind a bracket. */
function siblings(stops: readonly StateStop[], view: RunView, width: number): readonly Line[] {
  const each = Math.min(WIDEST_BOX, Math.floor((width - stops.length + 1) / stops.length));
  if (each < NARROWEST_BOX) {
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

/** A state in a box of its own, heavy where it is at work. */
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
  if (width < NARROWEST) return [cut(text, width)];
  const inside = Math.min(WIDEST_BOX, width) - 4;
  const frame: Style = execution === undefined ? "dim" : isUnfinished(execution.status) ? "accent" : "plain";
  const [tl, h, tr, v, bl, br] =
    execution === undefined ? "╭┄╮┆╰╯" : isUnfinished(execution.status) ? "┏━┓┃┗┛" : "╭─╮│╰╯";
  const edge = (left = "", right = ""): Line => [span(left + (h ?? "").repeat(inside + 2) + right, frame)];
  return [edge(tl, tr), [span(`${v} `, frame), ...pad(text, inside), span(` ${v}`, frame)], edge(bl, br)];
}

function waysOut(place: Place, { id, execution }: StateStop, stations: readonly Station[]): readonly Line[] {
  const { view, index, order } = place;
  const hops = view.path.filter((hop) => hop.from === id);
  const { targets } = view.states.find((state) => state.id === id) ?? {};
  const next = new Set(stations[index + 1] === undefined ? [] : stopsIn(stations[index + 1]).map((stop) => stop.id));
  const lines: Line[] = [];
  const forks = hops.filter((hop) => hop.choice === "fanOut");
  const forked = new Set(forks.flatMap((hop) => [...hop.to, ...(hop.join === undefined ? [] : [hop.join])]));
  let goesOn: boolean | undefined;
  for (const { to, taken } of waysOf(hops, targets ?? [], forked)) {
    const at = order.get(to);
    if (next.has(to)) goesOn = (goesOn ?? false) || taken > 0;
    else lines.push(wayLine(to, taken, at !== undefined && at <= index));
  }
  for (const hop of forks) {
    const beside = hop.to.every((to) => next.has(to));
    if (beside) goesOn = true;
    else lines.push([span("  ┗━▶ ", "accent"), span(`${hop.to.map(stateLabel).join(" ∥ ")} side by side`, "accent")]);
  }
  lines.push(...endings(hops));
  if (targets === undefined && goesOn === undefined && hops.length === 0 && stations.length > 1)
    lines.push([
      span(`  ┆ ${execution === undefined ? "its routes are not declared" : "nothing was decided yet"}`, "dim"),
    ]);
  return goesOn === undefined ? lines : [...lines, down(goesOn, forks.length > 0 ? "side by side" : "")];
}

function waysOf(hops: readonly Hop[], targets: readonly string[], forked: ReadonlySet<string>): readonly Way[] {
  const ways = new Map<string, number>(targets.filter((to) => !forked.has(to)).map((to) => [to, 0]));
  for (const hop of hops) if (hop.choice === "to") for (const to of hop.to) ways.set(to, (ways.get(to) ?? 0) + 1);
  return [...ways].map(([to, taken]) => ({ to, taken }));
}

function wayLine(to: string, taken: number, back: boolean): Line {
  const often = taken > 1 ? ` ×${taken}` : "";
  const style: Style = taken > 0 ? "accent" : "dim";
  const arrow = taken > 0 ? "  ┗━▶ " : "  └┄▷ ";
  return [span(arrow, style), span(`${back ? "↺ back to " : ""}${stateLabel(to)}${often}`, style)];
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
