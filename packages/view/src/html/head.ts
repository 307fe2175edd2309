import { type AuditFault, field } from "@sluice/core";
import { argsSummary } from "@sluice/core/gate";
import { redactJson } from "@sluice/core/runtime";
import type { RunView } from "../projection/run-view.ts";
import { idleOf } from "../projection/time/idle.ts";
import { approvalWords } from "../words/describe-event.ts";
import { isAgentModel, modelText, textAt } from "../words/fields.ts";
import { moneyOf } from "../words/symbols.ts";
import { count, grouped, isNothing, milliseconds, moment } from "../words/words.ts";
import { exact, html, type Markup, NOTHING } from "./markup/markup.ts";
import { runMark } from "./markup/status.ts";
import { shortText, textBlock } from "./markup/texts.ts";
import { value } from "./markup/values.ts";

const LONGEST_TASK = 10_000;
const LONGEST_VALUE = 40_000;
const LONGEST_ERROR = 10_000;
const LONGEST_LINE = 160;

/** The only input of a report: the same facts make the same page. */
export interface ReportFacts {
  /** Secrets are redacted already. */
  readonly view: RunView;
  readonly chain: ChainFacts;
  /** The lines of code around the place of the run's error, without secrets. */
  readonly frame?: string;
  /** Epoch milliseconds. */
  readonly madeAt: number;
  /** The version of Sluice. */
  readonly version: string;
}

/** The state of the run's journals. */
interface ChainFacts {
  /** Records of all journals. */
  readonly records: number;
  readonly journals: number;
  /** Hash of the root's last record. */
  readonly head: string;
  readonly faults: readonly AuditFault[];
  /** The command line that verifies the journals. */
  readonly verify: string;
}

/** The run, its end, its times, the people who took part, and its totals. */
export function headMarkup({ view, chain, madeAt }: ReportFacts): Markup {
  const {
    pipeline,
    task,
    status,
    runId,
    startedAt,
    endedAt,
    usage,
    executions,
    denied,
    models,
    agent,
    mode,
    cwd,
    people,
    meta,
  } = view;
  const { sign, word, tone } = runMark(status);
  const turns = executions.reduce((sum, one) => sum + one.turns, 0);
  const known =
    models.length > 0 ? models : [...new Set(executions.flatMap(({ spent }) => spent.map(({ model }) => model)))];
  const shown = known.filter((model) => agent === undefined || !isAgentModel(model)).map(modelText);
  const sums: readonly (readonly [string, string])[] = [
    [milliseconds((endedAt ?? view.updatedAt) - startedAt), "total"],
    ...(agent === undefined || !isNothing(usage)
      ? ([
          [grouped(usage.inputTokens), "tokens in"],
          [grouped(usage.outputTokens), "tokens out"],
          [moneyOf(usage) || "–", "cost"],
        ] as const)
      : []),
    [grouped(turns), turns === 1 ? "turn" : "turns"],
    [grouped(view.calls), "calls"],
    [grouped(denied.length), "denied"],
  ];
  const facts: readonly (readonly [string, Markup])[] = [
    ["run", html`<code>${runId}</code>`],
    ["started", html`${moment(startedAt)}`],
    ...(view.origin === "" ? [] : [["origin", exact(view.origin)] as const]),
    endedAt === undefined
      ? ["as of", html`${moment(madeAt)}, ${count(chain.records, "record")}`]
      : ["ended", html`${moment(endedAt)}`],
    ...idleFacts(view),
    ...(view.wakeAt === undefined ? [] : [["wakes at", html`${moment(view.wakeAt)}`] as const]),
    ...(agent === undefined ? [] : [["agent", exact(agent)] as const]),
    ["models", shown.length === 0 ? html`none` : exact(shown.join(", "))],
    ["people", people.length === 0 ? html`none` : exact(people.join(", "))],
    ["mode", exact(mode)],
    ...(meta.dangerLevel === undefined ? [] : [["danger", dangerMarkup(meta.dangerLevel)] as const]),
    ...(view.endState === undefined ? [] : [["ended in", exact(view.endState)] as const]),
    ["workspace", html`<code>${exact(cwd)}</code>`],
  ];
  return html`<header>
<p class="kind">Sluice run report</p>
<h1>${exact(pipeline)} <span class="badge ${tone}">${sign} ${word}</span></h1>
${isWithheld(view) ? html`<p class="notice">The pipeline keeps prompts, texts, arguments and results out of reports. The journal has them.</p>\n` : NOTHING}${task === "" ? NOTHING : html`<div class="task">${taskMarkup(task)}</div>\n`}${faultsMarkup(chain)}<dl class="sums">${sums.map(([number, name]) => html`<div><dt>${name}</dt><dd>${number}</dd></div>`)}</dl>
<dl class="facts">${facts.map(([name, fact]) => html`<div><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>
</header>
`;
}

/** When no process executed the run, and whether its clock was set back. */
function idleFacts(view: RunView): readonly (readonly [string, Markup])[] {
  const { suspendedMs, unknownMs, unknownSince } = idleOf(view);
  const { shiftedMs } = view;
  return [
    ...(suspendedMs === 0 ? [] : [["suspended", html`for ${milliseconds(suspendedMs)}`] as const]),
    ...(unknownMs === 0 ? [] : [["unknown", html`${milliseconds(unknownMs)} after a process ended`] as const]),
    ...(unknownSince === undefined
      ? []
      : [["unknown since", html`${moment(unknownSince)}: the process ended without a record`] as const]),
    ...(shiftedMs === undefined
      ? []
      : [
          [
            "clock",
            html`was set back; the latest times here are ${milliseconds(shiftedMs)} later than recorded`,
          ] as const,
        ]),
  ];
}

function isWithheld({ meta }: RunView): boolean {
  return meta.captureOutput === false;
}

function dangerMarkup(level: string): Markup {
  const tone = level === "dangerous" ? "bad" : level === "safe" ? "good" : "notice";
  return html`<span class="${tone}">${level}</span>`;
}

function taskMarkup(task: string): Markup {
  return task.length <= LONGEST_LINE * 3 && !task.includes("\n")
    ? html`<p>${exact(task)}</p>`
    : textBlock(task, LONGEST_TASK);
}

/** First on the page: after a change of the journal, nothing else can be trusted. */
function faultsMarkup({ faults }: ChainFacts): Markup {
  if (faults.length === 0) return NOTHING;
  const shown = faults
    .slice(0, 20)
    .map(({ runId, fault }) => html`<li><code>${exact(runId)}</code>: ${shortText(fault, 500)}</li>`);
  return html`<div class="alarm" role="alert"><p><b>✖ The journal of this run was changed (${count(faults.length, "fault")}).</b> This page may not show what happened.</p><ul>${shown}</ul></div>\n`;
}

/** The run's input, unless it is only the task, which the page's head shows. */
export function inputMarkup({ input = null, task }: RunView): Markup {
  const isTaskOnly = task !== "" && typeof input === "object" && Object.keys(input ?? {}).length === 1;
  return input === null || isTaskOnly ? NOTHING : html`<h3>Input</h3>${value(input, LONGEST_VALUE)}`;
}

export function resultMarkup({ view, frame }: Pick<ReportFacts, "view" | "frame">): Markup {
  return html`${outcomeMarkup(view, frame)}${lastWordMarkup(view)}`;
}

function lastWordMarkup({ lastWord }: RunView): Markup {
  if (lastWord === undefined) return NOTHING;
  const asks = lastWord.asksForRun ? html`<p class="notice">It asks for another run.</p>` : NOTHING;
  return html`<h3>What the orchestrator says</h3>${textBlock(lastWord.text, LONGEST_ERROR)}${asks}`;
}

/** Where the user's code threw, with the lines around it. */
function placeMarkup(at: string | undefined, frame: string | undefined): Markup {
  if (at === undefined) return NOTHING;
  const lines = frame === undefined ? NOTHING : html`<pre class="code">${exact(frame)}</pre>`;
  return html`<p><span class="label">at</span> <code>${exact(at)}</code></p>${lines}`;
}

function outcomeMarkup(view: RunView, frame: string | undefined): Markup {
  const { status, output, error } = view;
  if (isWithheld(view)) {
    const code = error === undefined ? NOTHING : html`<p class="bad"><b>✖ ${exact(error.code)}</b></p>`;
    return html`${code}<p class="faint">${error === undefined ? "The result" : "The message"} is left out.</p>`;
  }
  if (error !== undefined)
    return html`<p class="bad"><b>✖ ${exact(error.code)}</b></p>${textBlock(error.message, LONGEST_ERROR)}${placeMarkup(error.at, frame)}`;
  if (output !== undefined) return value(output, LONGEST_VALUE);
  return html`<p>${status === "completed" ? "The run has no output." : "There is no result yet."}</p>`;
}

export function requestsMarkup({ requests }: RunView): Markup {
  if (requests.length === 0) return NOTHING;
  const items = requests.map(({ requestId, body: whole, digest, openedAt, fault }) => {
    // Unlike events, requests are stored unredacted.
    const body = redactJson(whole);
    const tool = textAt(body, "tool");
    const what =
      tool === "" ? textAt(body, "question") || approvalWords(body) : argsSummary(tool, field(body, "input") ?? null);
    const differs = fault === undefined ? NOTHING : html` <b class="bad">✖ ${fault}</b>`;
    return html`<li><code>${shortText(what, 1_000)}</code> <span class="faint">requested ${moment(openedAt)}, request <code>${exact(requestId)}</code>, digest <code class="digest">${digest}</code></span>${differs}</li>`;
  });
  return html`<section id="open"><h2>Waiting for an answer</h2><ul>${items}</ul></section>\n`;
}

/** The end of the journal, and how to verify it. */
export function chainMarkup({ records, journals, head, faults, verify }: ChainFacts): Markup {
  const checked =
    faults.length === 0
      ? html`<p class="good">✔ When this page was made, the journal was intact.</p>`
      : html`<p class="bad">✖ When this page was made, the journal had been changed: see the top of the page.</p>`;
  return html`<dl class="facts"><div><dt>records</dt><dd>${grouped(records)}${journals > 1 ? ` in ${journals} journals` : ""}</dd></div><div><dt>head</dt><dd><code class="digest">${head}</code></dd></div></dl>
${checked}<p>To verify the journal against this head, run this where the store is:</p><pre tabindex="0">${exact(verify)}</pre>
<p class="faint">The head is a SHA-256 hash over all records. It reveals a change only if you keep it elsewhere: anyone who can rewrite the whole store can compute new hashes, and anyone can write a page like this. Text that looks like a secret is redacted in this page.</p>`;
}
