import { argsSummary, field, type Json, redactJson, type SluiceEvent } from "@sluice/core";
import type { RunView } from "../projection/run-view.ts";
import { forkedFrom, textAt } from "../words/fields.ts";
import { moneyOf } from "../words/symbols.ts";
import { count, milliseconds, moment } from "../words/words.ts";
import { callsIn, peopleIn } from "./decisions/decisions.ts";
import type { ReportFacts } from "./facts.ts";
import { exact, html, type Markup, NOTHING } from "./markup/markup.ts";
import { shortText, textBlock } from "./markup/texts.ts";
import { value } from "./markup/values.ts";
import { runMark } from "./status.ts";

const LONGEST_TASK = 10_000;
const LONGEST_VALUE = 40_000;
const LONGEST_ERROR = 10_000;
const LONGEST_LINE = 160;

/** What ran, how it ended, when, who took part, and what it used in all. */
export function headMarkup({ view, events, chain, madeAt }: ReportFacts, end: number): Markup {
  const { pipeline, task, status, runId, startedAt, endedAt, usage, executions, denied, models, mode, cwd } = view;
  const { sign, word, tone } = runMark(status);
  const people = peopleIn(events);
  const turns = executions.reduce((sum, one) => sum + one.turns, 0);
  const known =
    models.length > 0 ? models : [...new Set(executions.flatMap(({ spent }) => spent.map(({ model }) => model)))];
  const sums: readonly (readonly [string, string])[] = [
    [milliseconds((endedAt ?? end) - startedAt), "in all"],
    [usage.inputTokens.toLocaleString("en-US"), "tokens in"],
    [usage.outputTokens.toLocaleString("en-US"), "tokens out"],
    [moneyOf(usage) || "–", "cost"],
    [turns.toLocaleString("en-US"), turns === 1 ? "turn" : "turns"],
    [callsIn(events).toLocaleString("en-US"), "calls"],
    [denied.toLocaleString("en-US"), "denied"],
  ];
  const facts: readonly (readonly [string, Markup])[] = [
    ["run", html`<code>${runId}</code>`],
    ["started", html`${moment(startedAt)}`],
    ...pastFacts(events),
    endedAt === undefined
      ? ["as of", html`${moment(madeAt)}, ${count(chain.records, "record")}`]
      : ["ended", html`${moment(endedAt)}`],
    ["models", known.length === 0 ? html`none` : exact(known.join(", "))],
    ["people", people.length === 0 ? html`nobody took part` : exact(people.join(", "))],
    ["mode", exact(mode)],
    ["workspace", html`<code>${exact(cwd)}</code>`],
  ];
  return html`<header>
<p class="kind">Sluice run report</p>
<h1>${exact(pipeline)} <span class="badge ${tone}">${sign} ${word}</span></h1>
${task === "" ? NOTHING : html`<div class="task">${taskMarkup(task)}</div>\n`}${faultsMarkup(chain)}<dl class="sums">${sums.map(([number, name]) => html`<div><dt>${name}</dt><dd>${number}</dd></div>`)}</dl>
<dl class="facts">${facts.map(([name, fact]) => html`<div><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>
</header>
`;
}

/** Where the past of a forked run comes from: what stands before its fork happened in another run. */
function pastFacts(events: readonly SluiceEvent[]): readonly (readonly [string, Markup])[] {
  const started = events.find(({ type, data }) => type === "run.started" && field(data, "parent") === undefined);
  const past = forkedFrom(started?.data);
  return past === "" ? [] : [["past", exact(past)]];
}

function taskMarkup(task: string): Markup {
  return task.length <= LONGEST_LINE * 3 && !task.includes("\n")
    ? html`<p>${exact(task)}</p>`
    : textBlock(task, LONGEST_TASK);
}

/** Nothing else on the page can be believed then: it stands before all of it. */
function faultsMarkup({ faults }: ReportFacts["chain"]): Markup {
  if (faults.length === 0) return NOTHING;
  const shown = faults
    .slice(0, 20)
    .map(({ runId, fault }) => html`<li><code>${exact(runId)}</code>: ${shortText(fault, 500)}</li>`);
  return html`<div class="alarm" role="alert"><p><b>✖ The record of this run is not as it was written (${count(faults.length, "fault")}).</b> What follows may not be what happened.</p><ul>${shown}</ul></div>\n`;
}

/** What the run was given. The task stands in the page's head already. */
export function inputMarkup(events: readonly SluiceEvent[]): Markup {
  const started = events.find(({ type, data }) => type === "run.started" && field(data, "parent") === undefined);
  const input = field(started?.data, "input");
  if (input === undefined || isTaskOnly(input)) return NOTHING;
  return html`<h3>Input</h3>${value(input, LONGEST_VALUE)}`;
}

function isTaskOnly(input: Json): boolean {
  return textAt(input, "task") !== "" && typeof input === "object" && Object.keys(input ?? {}).length === 1;
}

/** What the run returned, or why it did not. */
export function resultMarkup({ status, output, error }: RunView): Markup {
  if (error !== undefined)
    return html`<p class="bad"><b>✖ ${exact(error.code)}</b></p>${textBlock(error.message, LONGEST_ERROR)}`;
  if (output !== undefined) return value(output, LONGEST_VALUE);
  return html`<p>${status === "completed" ? "It returned nothing." : "There is no result yet."}</p>`;
}

/** What waits for somebody now. */
export function requestsMarkup({ requests }: RunView): Markup {
  if (requests.length === 0) return NOTHING;
  const items = requests.map(({ requestId, body: whole, digest, openedAt }) => {
    // A request is kept as it will run: only its events are without secrets.
    const body = redactJson(whole);
    const tool = textAt(body, "tool");
    const what = tool === "" ? textAt(body, "question") : argsSummary(tool, field(body, "input") ?? null);
    return html`<li><code>${shortText(what, 1_000)}</code> <span class="faint">asked ${moment(openedAt)}, request <code>${exact(requestId)}</code>, digest <code class="digest">${digest}</code></span></li>`;
  });
  return html`<section id="open"><h2>Waits for an answer</h2><ul>${items}</ul></section>\n`;
}

/** Where the record ends, and how to find out whether it is the one that was written. */
export function chainMarkup({ records, journals, head, faults, verify }: ReportFacts["chain"]): Markup {
  const checked =
    faults.length === 0
      ? html`<p class="good">✔ When this page was made, every record was as it was written.</p>`
      : html`<p class="bad">✖ When this page was made, the record was not as it was written: see the top of the page.</p>`;
  return html`<dl class="facts"><div><dt>records</dt><dd>${records.toLocaleString("en-US")}${journals > 1 ? ` in ${journals} journals` : ""}</dd></div><div><dt>head</dt><dd><code class="digest">${head}</code></dd></div></dl>
${checked}<p>Verify the journal against this head, where the run's store is:</p><pre tabindex="0">${exact(verify)}</pre>
<p class="faint">The head is a SHA-256 over all records. It shows a change to the record only to somebody who kept it elsewhere: whoever can rewrite the whole store can compute new hashes, and a page can be written by anyone. What looks like a secret is replaced in this page.</p>`;
}
