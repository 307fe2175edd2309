import type { ExecutionView, RunView } from "../../projection/run-view.ts";
import { count, milliseconds } from "../../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "../markup/markup.ts";
import { cutNote } from "../markup/texts.ts";
import { statusMark } from "../status.ts";
import type { Span, Times } from "./spans.ts";
import { type TimeScale, timeScale, WIDTH } from "./time-scale.ts";

const MOST_LANES = 200;
/** Bars of one lane; of more, those that touch are drawn as one. */
const MOST_BARS = 400;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** When each stage was at work, to scale: a lane each, with its turns above and its tools below. */
export function timelineMarkup(view: RunView, times: Times, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, startedAt } = view;
  if (executions.length === 0) return html`<p>No stage was entered.</p>`;
  const busy = times.spans.filter(({ kind }) => kind === "model" || kind === "tool");
  const scale = timeScale({ from: startedAt, to: Math.max(times.end, startedAt + 1) }, busy);
  const ofKey = Map.groupBy(times.spans, ({ key }) => key ?? "");
  const stopped = ofKey.get("") ?? [];
  const lanes = executions.slice(0, MOST_LANES).map((execution) => {
    const spans = [...stopped, ...(ofKey.get(execution.key) ?? [])];
    return laneMarkup(execution, { spans, scale, end: times.end, anchor: anchors.get(execution.key) });
  });
  const left = executions.length - lanes.length;
  return html`${PATTERNS}<div class="lanes">
${lanes}${left > 0 ? html`<p>${cutNote(count(left, "stage"))}</p>` : NOTHING}
<div class="lane axis" aria-hidden="true"><div></div><div class="ticks">${TICKS.map((share) => html`<span>${milliseconds(scale.moment(share * WIDTH) - startedAt)}</span>`)}</div></div>
</div>
${legend(scale)}`;
}

interface Lane {
  readonly spans: readonly Span[];
  readonly scale: TimeScale;
  readonly end: number;
  readonly anchor: string | undefined;
}

function laneMarkup(execution: ExecutionView, { spans, scale, end, anchor }: Lane): Markup {
  const { executionId, startedAt, endedAt, fork, status } = execution;
  const { sign, word, tone } = statusMark(status);
  const to = endedAt ?? end;
  const [x1, x2] = [scale.at(startedAt), scale.at(to)];
  const beside = fork === undefined ? "" : " sibling";
  const sums = (["model", "tool", "person"] as const).flatMap((kind) => {
    const ms = spans
      .filter((span) => span.kind === kind && span.key !== undefined)
      .reduce((sum, span) => sum + span.to - span.from, 0);
    return ms === 0 ? [] : [`${SUM_WORDS[kind]} ${milliseconds(ms)}`];
  });
  const told = `${word}, from ${milliseconds(startedAt - scale.moment(0))} on, ${milliseconds(to - startedAt)}${sums.length === 0 ? "" : `: ${sums.join(", ")}`}`;
  return html`<div class="lane${beside}"><div class="who">${linkTo(anchor, html`<span class="${tone}">${sign}</span> ${exact(executionId)}`)} <span class="faint">${fork === undefined ? "" : "side by side · "}${milliseconds(to - startedAt)}</span></div>
<svg viewBox="0 0 ${WIDTH} 28" preserveAspectRatio="none" role="img" aria-label="${executionId}: ${told}"><title>${executionId}: ${told}</title>
<path class="grid" d="M250 0V28M500 0V28M750 0V28"/>${bar("stage", x1, x2, 1, 26, `${executionId}: ${told}`)}${barsOf(spans, scale, x1)}${scale.cut.map((one) => bar("gap", scale.at(one.from), scale.at(one.to), 0, 28, `${milliseconds(one.to - one.from)} without work, drawn shorter`))}</svg></div>
`;
}

const SUM_WORDS = { model: "models", tool: "tools", person: "people" } as const;
const ROWS: Readonly<Record<Span["kind"], readonly [y: number, height: number]>> = {
  suspended: [1, 26],
  person: [1, 26],
  pause: [4, 9],
  model: [4, 9],
  tool: [16, 9],
};

function barsOf(spans: readonly Span[], scale: TimeScale, from: number): readonly Markup[] {
  return (["suspended", "person", "pause", "model", "tool"] as const).flatMap((kind) => {
    const [y, height] = ROWS[kind];
    const own = spans
      .filter((span) => span.kind === kind)
      .map((span) => ({ ...span, x1: scale.at(span.from), x2: scale.at(span.to) }));
    // What happened to the run before the stage began is not the stage's.
    const seen = own.filter(({ x2 }) => kind !== "suspended" || x2 > from);
    return merged(seen).map(({ x1, x2, label, from: begun, to }) =>
      bar(kind, Math.max(from, x1), x2, y, height, `${label}, ${milliseconds(to - begun)}`),
    );
  });
}

interface Bar extends Span {
  readonly x1: number;
  readonly x2: number;
}

/** Few bars each by itself; of many those that touch as one. */
function merged(bars: readonly Bar[]): readonly Bar[] {
  if (bars.length <= MOST_BARS) return bars;
  const least = WIDTH / MOST_BARS;
  const all: (Bar & { times: number })[] = [];
  for (const one of bars.toSorted((a, b) => a.x1 - b.x1)) {
    const last = all.at(-1);
    if (last === undefined || one.x1 > last.x2 + least) {
      all.push({ ...one, times: 1 });
      continue;
    }
    const times = last.times + 1;
    const [x2, to] = [Math.max(last.x2, one.x2), Math.max(last.to, one.to)];
    all[all.length - 1] = { ...last, x2, to, times, label: `${times} bars drawn as one` };
  }
  return all;
}

function bar(name: string, x1: number, x2: number, y: number, height: number, title: string): Markup {
  const width = Math.max(1.5, x2 - x1);
  return html`<rect class="${name}" x="${rounded(Math.min(x1, WIDTH - 1.5))}" y="${y}" width="${rounded(width)}" height="${height}"><title>${title}</title></rect>`;
}

function rounded(number: number): number {
  return Math.round(number * 10) / 10;
}

/** Hatches for what is told apart by more than colour. */
const PATTERNS = html`<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>
<pattern id="hatch-person" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6"/><path d="M0 0V6"/></pattern>
<pattern id="hatch-suspended" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5"/><path d="M0 2H2"/></pattern>
</defs></svg>
`;

function legend({ cut }: TimeScale): Markup {
  const sample = (name: string, words: string): Markup =>
    html`<li><svg viewBox="0 0 22 12" width="22" height="12" aria-hidden="true"><rect class="${name}" x="1" y="1" width="20" height="10"/></svg> ${words}</li>`;
  const shorter =
    cut.length === 0
      ? NOTHING
      : html`<li><svg viewBox="0 0 22 12" width="22" height="12" aria-hidden="true"><rect class="gap" x="1" y="1" width="20" height="10"/></svg> no work, drawn shorter than it was: ${cut.map(({ from, to }) => milliseconds(to - from)).join(", ")}</li>`;
  return html`<ul class="legend keys">${sample("stage", "stage")}${sample("model", "a model's turn (above)")}${sample("tool", "a tool (below)")}${sample("person", "waits for a person")}${sample("pause", "waits for a provider")}${sample("suspended", "nobody was at work")}${shorter}</ul>`;
}
