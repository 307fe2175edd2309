import type { RunView } from "../projection/run-view.ts";
import { headOf } from "../text/clean.ts";
import { cut } from "../text/width.ts";
import { isUnfinished } from "../words/symbols.ts";
import { count } from "../words/words.ts";
import { BOX_HEIGHT, BOX_WIDTH, type Box, type EdgePath, layoutOf } from "./graph-layout.ts";
import { ENDS, type GraphEnd, pathWords, planOf } from "./graph-plan.ts";
import { html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { statusMark } from "./markup/status.ts";
import { cutNote } from "./markup/texts.ts";

/** Columns of a name in its box, and of the line below it. */
const NAME_COLUMNS = 18;
const FACT_COLUMNS = 27;
const MOST_STEPS = 200;

/** The pipeline as a picture, with the path of the run, and the path in words. `anchors` has each state's last execution. */
export function graphMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const plan = planOf(view);
  const words = pathWords(view.path, view.runId);
  const { width, height, boxes, paths } = layoutOf(plan);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="The pipeline as a picture">
<svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="graph-title graph-text">
<title id="graph-title">The states of the pipeline and the path of the run</title>
<desc id="graph-text">${words.length === 0 ? "No transition was taken." : words.slice(0, MOST_STEPS).join("; ")}</desc>
<defs>${arrow("taken")}${arrow("open")}</defs>
${paths.map(edgeMarkup)}${boxes.map((box) => boxMarkup(box, anchors))}</svg></div>
<p class="legend">Solid lines were taken, dashed lines are possible. A box with a solid edge was entered, one with cut corners failed, one with a dashed edge was not reached.${plan.left > 0 ? html` ${cutNote(count(plan.left, "state"))}` : NOTHING}</p>
${stepsMarkup(words)}`;
}

function stepsMarkup(words: readonly string[]): Markup {
  if (words.length === 0) return html`<p>No route was decided yet.</p>`;
  const left = words.length - MOST_STEPS;
  const steps = words.slice(0, MOST_STEPS).map((step) => html`<li>${step}</li>`);
  return html`<details${words.length > 12 ? NOTHING : html` open`}><summary>The path in words</summary><ol class="steps">${steps}${left > 0 ? html`<li>${cutNote(count(left, "step"))}</li>` : NOTHING}</ol></details>`;
}

function arrow(name: "taken" | "open"): Markup {
  return html`<marker id="arrow-${name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path class="head ${name}" d="M0 0L10 5L0 10z"/></marker>`;
}

function edgeMarkup({ edge: { from, to, taken }, path, label }: EdgePath): Markup {
  const name = taken > 0 ? "taken" : "open";
  const target = to.startsWith("\n") ? "the end" : to;
  const often = taken === 0 ? "not taken" : taken === 1 ? "taken" : `taken ${taken} times`;
  const times = taken > 1 ? html`<text class="often" x="${label.x}" y="${label.y}">${taken}×</text>` : NOTHING;
  return html`<g><title>${from} to ${target}: ${often}</title><path class="way ${name}" d="${path}" marker-end="url(#arrow-${name})"/>${times}</g>\n`;
}

function boxMarkup({ node, x, y }: Box, anchors: ReadonlyMap<string, string>): Markup {
  if (node.kind === "end") return endMarkup(node.ending, x, y);
  const { execution, visits, id } = node.stop;
  const { sign, word } = statusMark(execution?.status);
  const status =
    execution === undefined ? "unreached" : isUnfinished(execution.status) ? "unfinished" : execution.status;
  const facts = [
    word,
    ...(visits > 1 ? [`entered ${visits}×`] : []),
    ...(execution !== undefined && execution.turns > 0 ? [count(execution.turns, "turn")] : []),
    ...(node.isInitial && visits < 2 ? ["first"] : []),
  ];
  return html`${linkTo(
    anchors.get(id),
    html`<g class="box ${status}"><title>${id}: ${facts.join(", ")}</title>${shape(x, y, status)}<text x="${x + 14}" y="${y + 24}" class="name">${sign} ${shortened(id, NAME_COLUMNS)}</text><text x="${x + 14}" y="${y + 43}" class="fact">${shortened(fittingFacts(facts), FACT_COLUMNS)}</text></g>`,
  )}\n`;
}

function shape(x: number, y: number, status: string): Markup {
  if (status !== "failed") {
    const radius = status === "skipped" || status === "cancelled" ? 0 : 9;
    return html`<rect x="${x}" y="${y}" width="${BOX_WIDTH}" height="${BOX_HEIGHT}" rx="${radius}"/>`;
  }
  const corner = 12;
  const steps = `h${BOX_WIDTH - 2 * corner}l${corner} ${corner}v${BOX_HEIGHT - 2 * corner}l-${corner} ${corner}h-${BOX_WIDTH - 2 * corner}l-${corner} -${corner}v-${BOX_HEIGHT - 2 * corner}z`;
  return html`<path d="M${x + corner} ${y}${steps}"/>`;
}

function endMarkup(ending: GraphEnd, x: number, y: number): Markup {
  const sign = ending === "done" ? "✔" : ending === "fail" ? "✖" : "⊘";
  const height = BOX_HEIGHT - 20;
  return html`<g class="box end ${ending}"><rect x="${x + 8}" y="${y}" width="${BOX_WIDTH - 16}" height="${height}" rx="18"/><text x="${x + BOX_WIDTH / 2}" y="${y + height / 2 + 5}" text-anchor="middle" class="name">${sign} ${ENDS[ending]}</text></g>\n`;
}

/** As many whole facts as the box has room for, at least one. */
function fittingFacts(facts: readonly string[]): string {
  const last = facts.findLastIndex((_, index) => facts.slice(0, index + 1).join(" · ").length <= FACT_COLUMNS);
  return facts.slice(0, Math.max(1, last + 1)).join(" · ");
}

function shortened(text: string, columns: number): string {
  return cut([{ text: headOf(text, columns * 4) }], columns)
    .map((span) => span.text)
    .join("");
}
