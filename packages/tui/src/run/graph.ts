import {
  childrenText,
  type ForkView,
  type Hop,
  listStatus,
  type PipelinePart,
  pipelinePart,
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
import { count, oneLine } from "@sluice/view/words";

/**
 * The pipeline as states below each other, each with its routes. `━▶` marks routes that were taken, `┄▷` possible ones, `↺` routes
 * back to an earlier state, and a bracket the branches of a fan-out.
 */
export function graph(view: RunView, { width }: { readonly width: number }): readonly Line[] {
  if (width < 1) return [];
  // Of a pipeline that was invoked several times, the last run.
  const invoked = [...new Map(view.invoked.map((one) => [one.pipeline, one])).values()];
  const others = invoked.flatMap((one): readonly Line[] => [
    [],
    [span(`▣ pipeline ${stateLabel(one.pipeline)}`, "heading"), span(` as ${stateLabel(one.key)}`, "dim")],
    ...pipelineLines(pipelinePart(view, one.runId)),
  ]);
  return [...pipelineLines(pipelinePart(view)), ...others].map((line) => cut(line, width));
}

function pipelineLines(view: PipelinePart): readonly Line[] {
  const stations = stationsFromInitial(view);
  const order = new Map<string, number>();
  for (const [index, station] of stations.entries()) for (const { id } of stopsIn(station)) order.set(id, index);
  return stations.flatMap((station, index): readonly Line[] => {
    const next = stations[index + 1];
    if (station.kind === "fork") return forkLines(station, view, next);
    if (station.kind === "list") return [listLine(station, view), ...joinLines(station.fork, next)];
    const { execution, endsBranch } = station.stop;
    const isEnd = execution === undefined && endsBranch === true;
    const routes = isEnd ? [] : routesOf({ view, order, index, next }, station.stop);
    return [stateLine(station.stop, view), ...routes];
  });
}

function forkLines(
  { fork, stops }: Extract<Station, { readonly kind: "fork" }>,
  view: PipelinePart,
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
function listLine({ stop, items }: Extract<Station, { readonly kind: "list" }>, { initial }: PipelinePart): Line {
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

function stateLine({ id, execution, visits, final, endsBranch }: StateStop, { initial, states }: PipelinePart): Line {
  const { turnCap, kind = "", label = id } = states.find((state) => state.id === id) ?? {};
  if (final !== undefined) return finalLine(label, final);
  if (execution === undefined && endsBranch === true)
    return [span("✔ ", "good"), span(stateLabel(label), "strong"), span(" ended a branch", "good")];
  const { sign, word, style } = symbolOf(execution?.status);
  const facts = [
    ...(visits > 1 ? [`×${visits}`] : []),
    ...(execution !== undefined && execution.turns > 0 ? [count(execution.turns, "turn")] : []),
    ...(execution === undefined && turnCap !== undefined ? [`turn cap ${turnCap}`] : []),
    ...(kind === "" || kind === "agent" ? [] : [stateLabel(kind)]),
    ...(id === initial ? ["starts here"] : []),
  ];
  return [
    span(`${sign} `, style),
    span(stateLabel(label), execution === undefined ? "dim" : "strong"),
    span(` ${word}`, style),
    ...facts.map((fact) => span(` · ${fact}`, "dim")),
  ];
}

/** A final state: how it ends the run, and whether it did. */
function finalLine(label: string, { outcome, reached }: NonNullable<StateStop["final"]>): Line {
  const name = span(stateLabel(label), reached ? "strong" : "dim");
  if (!reached) return [span("○ ", "dim"), name, span(` final: ${oneLine(outcome, 20)}`, "dim")];
  const { sign, style } = symbolOf(outcome === "failed" || outcome === "cancelled" ? outcome : "completed");
  return [span(`${sign} `, style), name, span(` ended the run: ${oneLine(outcome, 20)}`, style)];
}

interface Position {
  readonly view: PipelinePart;
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
  const forked = new Set(
    forks.flatMap(({ to, join, children = [] }) => [
      ...to,
      ...(join === undefined ? [] : [join]),
      ...children.flatMap((child) => (child.kind === "branch" ? [child.terminal] : [])),
    ]),
  );
  /** Whether the run took a route to the next station; undefined if there is none. */
  let takesNext: boolean | undefined;
  const possible = (targets ?? []).filter((to) => !forked.has(to));
  let events: readonly string[] = [];
  for (const [to, taken] of routeCounts(hops, possible)) {
    if (isNext(to)) {
      takesNext = (takesNext ?? false) || taken.times > 0;
      events = taken.events;
    } else lines.push(routeLine(to, taken, (order.get(to) ?? Number.POSITIVE_INFINITY) <= index));
  }
  for (const hop of forks) {
    const then = hop.children === undefined ? "" : `${childrenText(hop)}, then ${hop.join ?? "?"}`;
    if (then !== "") lines.push([span(`  ┗━▶ ${oneLine(then, LONGEST_CHILDREN)}`, "accent"), ...byEvents(hop.event)]);
    else if (hop.to.every(isNext)) takesNext = true;
    else lines.push([span(`  ┗━▶ ${hop.to.map(stateLabel).join(" ∥ ")} ${besideWords(hop)}`, "accent")]);
  }
  lines.push(...detourLines(hops));
  for (const { choice } of hops)
    if (choice === "done" || choice === "fail" || choice === "cancel")
      lines.push([span("  ┗━▶ ", "accent"), ENDINGS[choice]]);
  if (targets === undefined && takesNext === undefined && hops.length === 0 && next !== undefined)
    lines.push([span(`  ┆ ${execution === undefined ? "its routes are not declared" : "not decided yet"}`, "dim")]);
  return takesNext === undefined
    ? lines
    : [
        ...lines,
        down(
          takesNext,
          forks.some(({ children }) => children === undefined) ? besideWords(forks.at(-1)) : eventText(events),
        ),
      ];
}

const LONGEST_CHILDREN = 400;

/** The interrupts of a state, and its returns to a state that was interrupted. */
function detourLines(hops: readonly Hop[]): readonly Line[] {
  const counts = new Map<string, number>();
  for (const { choice, to, event = "" } of hops) {
    const target = stateLabel(to[0] ?? "the interrupted state");
    const words = choice === "interrupt" ? `⇢ ${target}, by the interrupt ${stateLabel(event)}` : `↩ back to ${target}`;
    if (choice === "interrupt" || choice === "return") counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return [...counts].map(([words, times]) => [span(`  ${words}${times > 1 ? ` ×${times}` : ""}`, "notice")]);
}

function besideWords(hop: Hop | undefined): string {
  return hop?.items === undefined ? "side by side" : `for ${count(hop.items, "item")}`;
}

const ENDINGS = {
  done: span("✔ the run is done", "good"),
  fail: span("✖ the run fails", "bad"),
  cancel: span("⊘ the run is cancelled", "bad"),
} as const;

/** How often a route was taken, and the events that led along it. */
interface Taken {
  readonly times: number;
  readonly events: readonly string[];
}

function routeCounts(hops: readonly Hop[], possible: readonly string[]): ReadonlyMap<string, Taken> {
  const counts = new Map<string, Taken>(possible.map((to) => [to, { times: 0, events: [] }]));
  for (const { choice, to: targets, event } of hops) {
    if (choice !== "to") continue;
    for (const to of targets) {
      const { times, events } = counts.get(to) ?? { times: 0, events: [] };
      const isNew = event !== undefined && !events.includes(event);
      counts.set(to, { times: times + 1, events: isNew ? [...events, event] : events });
    }
  }
  return counts;
}

function routeLine(to: string, { times, events }: Taken, back: boolean): Line {
  const style: Style = times > 0 ? "accent" : "dim";
  const arrow = times > 0 ? "  ┗━▶ " : "  └┄▷ ";
  const often = times > 1 ? ` ×${times}` : "";
  return [
    span(arrow, style),
    span(`${back ? "↺ back to " : ""}${stateLabel(to)}${often}`, style),
    ...byEvents(...events),
  ];
}

function byEvents(...events: readonly (string | undefined)[]): Line {
  const text = eventText(events.filter((event) => event !== undefined));
  return text === "" ? [] : [span(` ${text}`, "dim")];
}

/** Events that are named at a route. */
const MOST_EVENTS = 4;

function eventText(events: readonly string[]): string {
  const left = events.length - MOST_EVENTS;
  const names = events.slice(0, MOST_EVENTS).map((event) => oneLine(event, 40));
  return names.length === 0 ? "" : `by ${names.join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}

function down(taken: boolean, word: string): Line {
  const style: Style = taken ? "accent" : "dim";
  return [span(taken ? "  ▼" : "  ▽", style), ...(word === "" ? [] : [span(` ${word}`, "dim")])];
}

function isIn(station: Station | undefined, state: string): boolean {
  return station !== undefined && stopsIn(station).some(({ id }) => id === state);
}
