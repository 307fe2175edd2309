import type { ExecutionView, RunView } from "../projection/run-view.ts";
import { count, milliseconds, moment, spending } from "../words/words.ts";
import { exact, html, type Markup, NOTHING } from "./markup/markup.ts";
import { statusMark } from "./markup/status.ts";
import { cutNote, shortText } from "./markup/texts.ts";
import { transcript } from "./transcript.ts";

/** UTF-16 units of all transcripts, and the least of each. */
const MOST_TEXT = 3_000_000;
const LEAST_TEXT = 4_000;
/** Maximum number of stages with a transcript, and how many of them are the last ones. */
const MOST_STAGES = 300;
const LAST_STAGES = 60;
/** With more stages, only those that did not complete are unfolded. */
const MOST_OPEN = 12;
const LONGEST_FAULT = 2_000;

/** The executions with a section: of very many, the first and the last. */
export function shownStages(executions: readonly ExecutionView[]): readonly ExecutionView[] {
  if (executions.length <= MOST_STAGES) return executions;
  return [...executions.slice(0, MOST_STAGES - LAST_STAGES), ...executions.slice(-LAST_STAGES)];
}

/** The executions with their transcripts. Later transcripts can use the room that earlier ones leave. */
export function stagesMarkup({ executions, updatedAt }: RunView, anchors: ReadonlyMap<string, string>): Markup {
  if (executions.length === 0) return html`<p>No stage was entered.</p>`;
  const shown = shownStages(executions);
  let room = MOST_TEXT;
  const sections = shown.map((execution, at) => {
    const share = Math.max(LEAST_TEXT, Math.floor(room / (shown.length - at)));
    const isOpen = executions.length <= MOST_OPEN || execution.status !== "completed";
    const section = stageMarkup(execution, { end: updatedAt, share, isOpen, anchor: anchors.get(execution.key) ?? "" });
    room = Math.max(0, room - section.length);
    return section;
  });
  if (shown.length === executions.length) return html`${sections}`;
  const note = html`<p>${cutNote(`${count(executions.length - shown.length, "stage")}, to keep the page small; the journal has them`)}</p>\n`;
  return html`${sections.slice(0, -LAST_STAGES)}${note}${sections.slice(-LAST_STAGES)}`;
}

interface StageOptions {
  /** Epoch milliseconds of the run's last event. */
  readonly end: number;
  readonly share: number;
  readonly isOpen: boolean;
  readonly anchor: string;
}

function stageMarkup(execution: ExecutionView, { end, share, isOpen, anchor }: StageOptions): Markup {
  const { executionId, status, attempt, turns, usage, startedAt, endedAt, fork, tools, fault, key } = execution;
  const { sign, word, tone } = statusMark(status);
  const facts = [
    ...(attempt > 1 ? [count(attempt, "attempt")] : []),
    count(turns, "turn"),
    milliseconds((endedAt ?? end) - startedAt),
    ...(turns > 0 ? [spending(usage)] : []),
  ];
  const envelope = tools === undefined ? [] : [`envelope: ${tools.length === 0 ? "no tools" : tools.join(", ")}`];
  const join = fork === undefined ? [] : [`in parallel, joined in ${fork.join || "an unknown state"}`];
  const notes = [`from ${moment(startedAt)}`, ...envelope, ...join].map((note) => html`<li>${note}</li>`);
  return html`<details class="stage" id="${anchor}" data-stage="${key}"${isOpen ? html` open` : NOTHING}>
<summary><h3><span class="${tone}">${sign}</span> ${exact(executionId)} <span class="${tone}">${word}</span></h3> <span class="faint">${facts.join(" · ")}</span></summary>
<ul class="facts">${notes}</ul>
${fault === undefined ? NOTHING : html`<p class="bad"><span class="label">why</span> ${shortText(fault, LONGEST_FAULT)}</p>\n`}${transcript(execution, share)}</details>
`;
}
