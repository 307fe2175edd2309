import {
  type ForkView,
  type Hop,
  listStatus,
  type RunView,
  type StateStop,
  type Station,
  span,
  stateLabel,
  stationsFromInitial,
  stopsIn,
  symbolOf,
} from "@sluice/view";
import { cut, type Line, type Style } from "@sluice/view/text";
import { count } from "@sluice/view/words";

/**
 * The pipeline as states below each other, each with its routes. `━▶` marks routes that were taken, `┄▷` possible ones, `↺` routes
 * back to an earlier state, and a bracket the branches of a fan-out.
 */
export function graph(view: RunView, { width }: { readonly width: number }): readonly Line[] {
  if (width < 1) return [];
  const stations = stationsFromInitial(view);
  const order = new Map<string, number>();
  for (const [index, station] of stations.entries()) for (const { id } of stopsIn(station)) order.set(id, index);
  const lines = stations.flatMap((station, index): readonly Line[] => {
    const next = stations[index + 1];
    if (station.kind === "fork") return forkLines(station, view, next);
    if (station.kind === "list") return [listLine(station, view), ...joinLines(station.fork, next)];
    const routes = routesOf({ view, order, index, next }, station.stop);
    return [stateLine(station.stop, view), ...routes];
  });
  return lines.map((line) => cut(line, width));
}

function forkLines(
  { fork, stops }: Extract<Station, { readonly kind: "fork" }>,
  view: RunView,
  next: Station | undefined,
): readonly Line[] {
  const branches = stops.map((stop, row) => {
    const corner = row === 0 ? "┌ " : row === stops.length - 1 ? "└ " : "│ ";
    return [span(corner, "dim"), ...stateLine(stop, view)];
  });
  return [...branches, ...joinLines(fork, next)];
}

function joinLines({ join, joined }: ForkView, next: Station | undefined): readonly Line[] {
  if (isIn(next, join)) return [down(joined, "joined")];
  return [[span(`${joined ? "  ┗━▶" : "  └┄▷"} joined in ${stateLabel(join)}`, joined ? "accent" : "dim")]];
}

/** A state with the counts of its latest list. */
function listLine({ stop, items }: Extract<Station, { readonly kind: "list" }>, { initial }: RunView): Line {
  const { sign, word, style } = symbolOf(listStatus(items));
  const { total, completed, failed, others, active } = items;
  const counts = [
    ...(completed > 0 ? [`${completed} done`] : []),
    ...(others > 0 ? [`${others} cancelled or skipped`] : []),
    ...(active.length > 0 ? [`${active.length} active`] : []),
  ];
  const facts = [
    ...(stop.visits > 1 ? [`×${stop.visits}`] : []),
    count(total, "item"),
    ...(counts.length === 0 ? [] : [counts.join(", ")]),
    ...(stop.id === initial ? ["starts here"] : []),
  ];
  return [
    span(`${sign} `, style),
    span(stateLabel(stop.id), stop.execution === undefined ? "dim" : "strong"),
    span(` ${failed > 0 ? `${failed} failed` : word}`, style),
    ...facts.map((fact) => span(` · ${fact}`, "dim")),
  ];
}

function stateLine({ id, execution, visits }: StateStop, { initial, states }: RunView): Line {
  const { sign, word, style } = symbolOf(execution?.status);
  const { turnCap, kind = "" } = states.find((state) => state.id === id) ?? {};
  const facts = [
    ...(visits > 1 ? [`×${visits}`] : []),
    ...(execution !== undefined && execution.turns > 0 ? [count(execution.turns, "turn")] : []),
    ...(execution === undefined && turnCap !== undefined ? [`turn cap ${turnCap}`] : []),
    ...(kind === "" || kind === "agent" ? [] : [stateLabel(kind)]),
    ...(id === initial ? ["starts here"] : []),
  ];
  return [
    span(`${sign} `, style),
    span(stateLabel(id), execution === undefined ? "dim" : "strong"),
    span(` ${word}`, style),
    ...facts.map((fact) => span(` · ${fact}`, "dim")),
  ];
}

interface Position {
  readonly view: RunView;
  /** The station index of each state. */
  readonly order: ReadonlyMap<string, number>;
  readonly index: number;
  readonly next: Station | undefined;
}

function routesOf({ view, order, index, next }: Position, { id, execution }: StateStop): readonly Line[] {
  const hops = view.path.filter((hop) => hop.from === id);
  const { targets } = view.states.find((state) => state.id === id) ?? {};
  const isNext = (to: string): boolean => isIn(next, to);
  const lines: Line[] = [];
  const forks = hops.filter((hop) => hop.choice === "fanOut");
  const forked = new Set(forks.flatMap((hop) => [...hop.to, ...(hop.join === undefined ? [] : [hop.join])]));
  /** Whether the run took a route to the next station; undefined if there is none. */
  let takesNext: boolean | undefined;
  const possible = (targets ?? []).filter((to) => !forked.has(to));
  for (const [to, taken] of routeCounts(hops, possible)) {
    if (isNext(to)) takesNext = (takesNext ?? false) || taken > 0;
    else lines.push(routeLine(to, taken, (order.get(to) ?? Number.POSITIVE_INFINITY) <= index));
  }
  for (const hop of forks) {
    if (hop.to.every(isNext)) takesNext = true;
    else lines.push([span(`  ┗━▶ ${hop.to.map(stateLabel).join(" ∥ ")} ${besideWords(hop)}`, "accent")]);
  }
  for (const { choice } of hops)
    if (choice !== "to" && choice !== "fanOut") lines.push([span("  ┗━▶ ", "accent"), ENDINGS[choice]]);
  if (targets === undefined && takesNext === undefined && hops.length === 0 && next !== undefined)
    lines.push([span(`  ┆ ${execution === undefined ? "its routes are not declared" : "not decided yet"}`, "dim")]);
  return takesNext === undefined
    ? lines
    : [...lines, down(takesNext, forks.length > 0 ? besideWords(forks.at(-1)) : "")];
}

function besideWords(hop: Hop | undefined): string {
  return hop?.items === undefined ? "side by side" : `for ${count(hop.items, "item")}`;
}

const ENDINGS = {
  done: span("✔ the run is done", "good"),
  fail: span("✖ the run fails", "bad"),
  cancel: span("⊘ the run is cancelled", "bad"),
} as const;

function routeCounts(hops: readonly Hop[], possible: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>(possible.map((to) => [to, 0]));
  for (const hop of hops) if (hop.choice === "to") for (const to of hop.to) counts.set(to, (counts.get(to) ?? 0) + 1);
  return counts;
}

function routeLine(to: string, taken: number, back: boolean): Line {
  const times = taken > 1 ? ` ×${taken}` : "";
  const style: Style = taken > 0 ? "accent" : "dim";
  const arrow = taken > 0 ? "  ┗━▶ " : "  └┄▷ ";
  return [span(arrow, style), span(`${back ? "↺ back to " : ""}${stateLabel(to)}${times}`, style)];
}

function down(taken: boolean, word: string): Line {
  const style: Style = taken ? "accent" : "dim";
  return [span(taken ? "  ▼" : "  ▽", style), ...(word === "" ? [] : [span(` ${word}`, "dim")])];
}

function isIn(station: Station | undefined, state: string): boolean {
  return station !== undefined && stopsIn(station).some(({ id }) => id === state);
}
