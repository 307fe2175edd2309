import { type ExecutionGroup, flatGroupsOf, sumOf as sumOfItems } from "../projection/graph/stations.ts";
import type { ExecutionView, RunView, TimeSpan } from "../projection/run-view.ts";
import { workedTogetherMs } from "../projection/time/rests.ts";
import { headOf } from "../text/clean.ts";
import { commandLineOf } from "../words/command-words.ts";
import { executionName } from "../words/describe-event.ts";
import { count, milliseconds } from "../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { listMark, type StatusMark, statusMark } from "./markup/status.ts";
import { cutNote } from "./markup/texts.ts";
import { idleIn, sumOf, type TimeScale, timeScale, WIDTH } from "./time-scale.ts";

const MOST_LANES = 200;
/** Items of a list with a lane each; those of a longer list share one. */
const MOST_ITEMS = 20;
/** Bars of one lane and kind. */
const MOST_BARS = 400;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** A span whose end is known: an open one ends with the report. */
type Span = TimeSpan & { readonly to: number };

/** A lane per execution, to scale, with its turns above its tools. */
export function timelineMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, startedAt, updatedAt: end } = view;
  if (executions.length === 0) return html`<p>No stage was entered.</p>`;
  const recorded = [...view.spans].map((span): Span => ({ ...span, to: span.to ?? Math.max(span.from, end) }));
  const all = [...recorded, ...commandSpans(executions, recorded, end)];
  const busy = all.filter(({ kind }) => kind === "model" || kind === "tool");
  const scale = timeScale({ from: startedAt, to: Math.max(end, startedAt + 1) }, busy);
  const byKey = Map.groupBy(all, ({ key }) => key ?? "");
  const suspended = byKey.get("") ?? [];
  const rows = flatGroupsOf(view).flatMap((group): readonly Row[] =>
    group.kind === "one"
      ? [rowOf(group.execution)]
      : group.items.executions.length <= MOST_ITEMS
        ? group.items.executions.map(rowOf)
        : [listRow(group)],
  );
  const lanes = rows.slice(0, MOST_LANES).map((row) => {
    const spans = [...suspended, ...row.executions.flatMap(({ key }) => byKey.get(key) ?? [])];
    return laneMarkup(row, { spans, scale, end, anchor: anchors.get(row.executions[0]?.key ?? "") });
  });
  const left = rows.length - lanes.length;
  return html`${PATTERNS}<div class="lanes">
${lanes}${left > 0 ? html`<p>${cutNote(count(left, "stage"))}</p>` : NOTHING}
<div class="lane axis" aria-hidden="true"><div></div><div class="ticks">${TICKS.map((share) => html`<span>${milliseconds(scale.moment(share * WIDTH) - startedAt)}</span>`)}</div></div>
</div>
${legend(scale)}`;
}

/** UTF-16 units. */
const LONGEST_COMMAND = 80;

/** When commands of states ran: no event says that, so the time of their executions without rests and waits. */
function commandSpans(executions: readonly ExecutionView[], recorded: readonly Span[], end: number): readonly Span[] {
  const byKey = Map.groupBy(recorded, ({ key }) => key ?? "");
  return executions.flatMap(({ key, items, startedAt, endedAt = end }) => {
    const command = [...items].find((item) => item.kind === "command");
    if (command === undefined) return [];
    const others = [...(byKey.get("") ?? []), ...(byKey.get(key) ?? [])];
    const label = `command: ${headOf(commandLineOf(command), LONGEST_COMMAND)}`;
    return idleIn({ from: startedAt, to: endedAt }, others).map(
      (span): Span => ({ ...span, key, kind: "tool", label }),
    );
  });
}

/** What a lane shows: one execution, or all items of a long list. */
interface Row extends Pick<ExecutionView, "startedAt" | "endedAt" | "fork"> {
  readonly name: string;
  /** How it ran, if not by itself. */
  readonly how: string;
  readonly mark: StatusMark;
  readonly executions: readonly ExecutionView[];
}

function rowOf(execution: ExecutionView): Row {
  const { fork, handles, invoked } = execution;
  const how = handles !== undefined ? "for an interrupt · " : invoked !== undefined ? "invoked · " : "";
  return {
    ...execution,
    name: executionName(execution),
    how: how === "" && fork !== undefined ? "in parallel · " : how,
    mark: statusMark(execution.status),
    executions: [execution],
  };
}

function listRow({ first, items }: Extract<ExecutionGroup, { readonly kind: "list" }>): Row {
  const { endedAt, startedAt } = sumOfItems(items.executions);
  return {
    name: `${first.executionId}, ${count(items.total, "item")}`,
    how: first.fork === undefined ? "" : "in parallel · ",
    executions: items.executions,
    mark: listMark(items),
    startedAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(first.fork === undefined ? {} : { fork: first.fork }),
  };
}

interface Lane {
  readonly spans: readonly Span[];
  readonly scale: TimeScale;
  readonly end: number;
  readonly anchor: string | undefined;
}

function laneMarkup(
  { name, how, startedAt, endedAt, fork, mark, executions }: Row,
  { spans, scale, end, anchor }: Lane,
): Markup {
  const { sign, word, tone } = mark;
  const to = endedAt ?? end;
  const worked = milliseconds(workedTogetherMs(executions, end));
  const x1 = scale.at(startedAt);
  const sums = (["model", "tool", "person", "sleep"] as const).flatMap((kind) => {
    const ms = sumOf(spans.filter((span) => span.kind === kind));
    return ms === 0 ? [] : [`${kind} ${milliseconds(ms)}`];
  });
  const label = `${name}: ${word}, from ${milliseconds(startedAt - scale.moment(0))}, worked ${worked}${sums.length === 0 ? "" : `: ${sums.join(", ")}`}`;
  return html`<div class="lane${fork === undefined ? "" : " sibling"}"><div class="who">${linkTo(anchor, html`<span class="${tone}">${sign}</span> ${exact(name)}`)} <span class="faint">${how}${worked}</span></div>
<svg viewBox="0 0 ${WIDTH} 28" preserveAspectRatio="none" role="img" aria-label="${label}"><title>${label}</title>
<path class="grid" d="M250 0V28M500 0V28M750 0V28"/>${bar("stage", x1, scale.at(to), 1, 26, label)}${barsOf(spans, scale, x1)}${scale.cut.map((one) => bar("gap", scale.at(one.from), scale.at(one.to), 0, 28, `${milliseconds(one.to - one.from)} idle, drawn shorter`))}</svg></div>
`;
}

/** The kinds in the order they are drawn, with the position of their bars in a lane. */
const KINDS = [
  { kind: "unknown", y: 1, height: 26 },
  { kind: "suspended", y: 1, height: 26 },
  { kind: "sleep", y: 1, height: 26 },
  { kind: "interrupted", y: 1, height: 26 },
  { kind: "person", y: 1, height: 26 },
  { kind: "pause", y: 4, height: 9 },
  { kind: "model", y: 4, height: 9 },
  { kind: "tool", y: 16, height: 9 },
] as const;

function barsOf(spans: readonly Span[], scale: TimeScale, from: number): readonly Markup[] {
  return KINDS.flatMap(({ kind, y, height }) => {
    const bars = spans
      .filter((span) => span.kind === kind)
      .map((span) => ({ ...span, x1: scale.at(span.from), x2: scale.at(span.to) }))
      // The run can be suspended before the execution starts.
      .filter(({ x2 }) => (kind !== "suspended" && kind !== "unknown") || x2 > from);
    return merged(bars).map(({ x1, x2, label, from: start, to }) =>
      bar(kind, Math.max(from, x1), x2, y, height, to === start ? label : `${label}, ${milliseconds(to - start)}`),
    );
  });
}

interface Bar extends Span {
  readonly x1: number;
  readonly x2: number;
}

/** Of too many bars, those that begin close together are one. */
function merged(bars: readonly Bar[]): readonly Bar[] {
  if (bars.length <= MOST_BARS) return bars;
  const groups = Map.groupBy(bars, ({ x1 }) => Math.floor((x1 / WIDTH) * MOST_BARS));
  return [...groups.values()].flatMap((group) =>
    group.reduce((a, b) => ({
      kind: a.kind,
      from: Math.min(a.from, b.from),
      to: Math.max(a.to, b.to),
      x1: Math.min(a.x1, b.x1),
      x2: Math.max(a.x2, b.x2),
      label: `${group.length} bars drawn as one`,
    })),
  );
}

function bar(name: string, x1: number, x2: number, y: number, height: number, title: string): Markup {
  const width = Math.max(1.5, x2 - x1);
  return html`<rect class="${name}" x="${rounded(Math.min(x1, WIDTH - 1.5))}" y="${y}" width="${rounded(width)}" height="${height}"><title>${title}</title></rect>`;
}

function rounded(number: number): number {
  return Math.round(number * 10) / 10;
}

/** Hatches, so that kinds differ by more than colour. */
const PATTERNS = html`<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>
<pattern id="hatch-person" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M0 0V6"/></pattern>
<pattern id="hatch-sleep" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8"/><path d="M0 0L8 8"/></pattern>
<pattern id="hatch-unknown" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6"/><path d="M0 0L6 6M6 0L0 6"/></pattern>
<pattern id="hatch-suspended" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5"/><path d="M0 2H2"/></pattern>
</defs></svg>
`;

function legend({ cut }: TimeScale): Markup {
  const sample = (name: string, words: string): Markup =>
    html`<li><svg viewBox="0 0 22 12" width="22" height="12" aria-hidden="true"><rect class="${name}" x="1" y="1" width="20" height="10"/></svg> ${words}</li>`;
  const gaps = cut.map(({ from, to }) => milliseconds(to - from)).join(", ");
  return html`<ul class="legend keys">${sample("stage", "stage")}${sample("model", "model turn (above)")}${sample("tool", "tool or command (below)")}${sample("person", "waiting for a person")}${sample("pause", "waiting for a provider")}${sample("interrupted", "waiting for an interrupt")}${sample("sleep", "asleep")}${sample("suspended", "suspended")}${sample("unknown", "unknown: the process ended")}${cut.length === 0 ? NOTHING : sample("gap", `idle, drawn shorter than it was: ${gaps}`)}</ul>`;
}
