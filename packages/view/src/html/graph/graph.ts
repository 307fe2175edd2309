import type { RunView } from "../../projection/run-view.ts";
import { headOf } from "../../text/clean.ts";
import { cut } from "../../text/width.ts";
import { isUnfinished } from "../../words/symbols.ts";
import { count } from "../../words/words.ts";
import { html, type Markup, NOTHING } from "../markup/markup.ts";
import { cutNote } from "../markup/texts.ts";
import { statusMark } from "../status.ts";
import { type Box, type Line, layoutOf } from "./graph-layout.ts";
import { ENDS, type Ending, pathWords, planOf } from "./graph-plan.ts";

/** Columns of a name in its box, and of what is said below it. */
const NAME_COLUMNS = 18;
const FACT_COLUMNS = 27;
/** Steps of the way that are told in words. */
const MOST_STEPS = 200;

/** The pipeline as a picture, with the way that was taken, and the same way in words. `anchors` leads to each state's last execution. */
export function graphMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const plan = planOf(view);
  const words = pathWords(view.path, view.runId);
  const { width, height, boxes, lines } = layoutOf(plan);
  const titles = "graph-title graph-text";
  return html`<div class="scroll" tabindex="0" role="region" aria-label="The pipeline as a picture">
<svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${titles}">
<title id="graph-title">The states of the pipeline and the way that was taken</title>
<desc id="graph-text">${words.length === 0 ? "No way was taken yet." : words.slice(0, MOST_STEPS).join("; ")}</desc>
<defs>${arrow("taken")}${arrow("open")}</defs>
${lines.map(lineMarkup)}${boxes.map((box) => boxMarkup(box, anchors))}</svg></div>
<p class="legend">Solid lines were taken, dashed ones could have been. A box with a solid edge was entered, one with cut corners failed, one with a dashed edge was not reached.${plan.left > 0 ? html` ${cutNote(count(plan.left, "state"))}` : NOTHING}</p>
${stepsMarkup(words)}`;
}

function stepsMarkup(words: readonly string[]): Markup {
  if (words.length === 0) return html`<p>Nothing was decided yet.</p>`;
  const left = words.length - MOST_STEPS;
  const steps = words.slice(0, MOST_STEPS).map((step) => html`<li>${step}</li>`);
  return html`<details${words.length > 12 ? NOTHING : html` open`}><summary>The way in words</summary><ol class="steps">${steps}${left > 0 ? html`<li>${cutNote(count(left, "step"))}</li>` : NOTHING}</ol></details>`;
}

function arrow(name: "taken" | "open"): Markup {
  return html`<marker id="arrow-${name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path class="head ${name}" d="M0 0L10 5L0 10z"/></marker>`;
}

function lineMarkup({ way, path, at }: Line): Markup {
  const name = way.taken > 0 ? "taken" : "open";
  const said = way.taken > 1 ? `${way.taken}×` : "";
  const told = `${endless(way.from)} to ${endless(way.to)}: ${way.taken === 0 ? "not taken" : way.taken === 1 ? "taken" : `taken ${way.taken} times`}`;
  const label = said === "" ? NOTHING : html`<text class="often" x="${at.x}" y="${at.y}">${said}</text>`;
  return html`<g><title>${told}</title><path class="way ${name}" d="${path}" marker-end="url(#arrow-${name})"/>${label}</g>\n`;
}

function endless(id: string): string {
  return id.startsWith("\n") ? "the end" : id;
}

function boxMarkup(box: Box, anchors: ReadonlyMap<string, string>): Markup {
  const { place, id } = box;
  if (place.kind === "end") return endMarkup(box, place.ending);
  const { execution, visits } = place.stop;
  const { sign, word } = statusMark(execution?.status);
  const status =
    execution === undefined ? "unreached" : isUnfinished(execution.status) ? "unfinished" : execution.status;
  const facts = [
    execution === undefined ? "not reached" : word,
    ...(visits > 1 ? [`entered ${visits}×`] : []),
    ...(execution !== undefined && execution.turns > 0 ? [count(execution.turns, "turn")] : []),
    ...(place.isFirst && visits < 2 ? ["first"] : []),
  ];
  const [x, first, second] = [box.x + 14, box.y + 24, box.y + 43];
  const content = html`<title>${id}: ${facts.join(", ")}</title>${shape(box, status)}<text x="${x}" y="${first}" class="name">${sign} ${shortened(id, NAME_COLUMNS)}</text><text x="${x}" y="${second}" class="fact">${shortened(asMany(facts), FACT_COLUMNS)}</text>`;
  const anchor = anchors.get(id);
  return anchor === undefined
    ? html`<g class="box ${status}">${content}</g>\n`
    : html`<a href="#${anchor}"><g class="box ${status}">${content}</g></a>\n`;
}

function shape({ x, y, width, height }: Box, status: string): Markup {
  if (status !== "failed") {
    const round = status === "skipped" || status === "cancelled" ? 0 : 9;
    return html`<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}"/>`;
  }
  const [right, bottom, cutOff] = [x + width, y + height, 12];
  const corners = [
    [x + cutOff, y],
    [right - cutOff, y],
    [right, y + cutOff],
    [right, bottom - cutOff],
    [right - cutOff, bottom],
    [x + cutOff, bottom],
    [x, bottom - cutOff],
    [x, y + cutOff],
  ];
  return html`<polygon points="${corners.map((corner) => corner.join(",")).join(" ")}"/>`;
}

function endMarkup({ x, y, width, height }: Box, ending: Ending): Markup {
  const sign = ending === "done" ? "✔" : ending === "fail" ? "✖" : "⊘";
  const tall = height - 20;
  return html`<g class="box end ${ending}"><rect x="${x + 8}" y="${y}" width="${width - 16}" height="${tall}" rx="18"/><text x="${x + width / 2}" y="${y + tall / 2 + 5}" text-anchor="middle" class="name">${sign} ${ENDS[ending]}</text></g>\n`;
}

/** As many of them as a box has room for: half a word tells nothing. The first always. */
function asMany(facts: readonly string[]): string {
  const fits = facts.findLastIndex((_, at) => facts.slice(0, at + 1).join(" · ").length <= FACT_COLUMNS);
  return facts.slice(0, Math.max(1, fits + 1)).join(" · ");
}

function shortened(text: string, columns: number): string {
  return cut([{ text: headOf(text, columns * 4) }], columns)
    .map((span) => span.text)
    .join("");
}
