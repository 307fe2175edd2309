import { childStatus, type ExecutionGroup, groupsOf, sumOf } from "../projection/graph/stations.ts";
import type { ExecutionView, RunView } from "../projection/run-view.ts";
import { workedMs, workedTogetherMs } from "../projection/time/rests.ts";
import { polledText } from "../words/command-words.ts";
import { executionName } from "../words/describe-event.ts";
import { count, grouped, milliseconds, moment, spending } from "../words/words.ts";
import { exact, html, type Markup, NOTHING } from "./markup/markup.ts";
import { listMark, statusMark } from "./markup/status.ts";
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

/** The executions with their transcripts, those of a list below its sum. Later transcripts can use the room that earlier ones leave. */
export function stagesMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, updatedAt: end } = view;
  if (executions.length === 0) return html`<p>No stage was entered.</p>`;
  const groups = groupsOf(view);
  let room = MOST_TEXT;
  let left = anchors.size;
  const section = (execution: ExecutionView, anchor: string, isItem: boolean, isInside: boolean): Markup => {
    const share = Math.max(LEAST_TEXT, Math.floor(room / Math.max(1, left)));
    const isOpen = !isItem && (groups.length <= MOST_OPEN || execution.status !== "completed");
    const markup = stageMarkup(execution, { end, share, isOpen, anchor, isItem, isInside: isItem || isInside });
    left -= 1;
    room = Math.max(0, room - markup.length);
    return markup;
  };
  let omitted = 0;
  const note = (): Markup => {
    const what = `${count(omitted, "stage")}, to keep the page small; the journal has them`;
    const markup = omitted === 0 ? NOTHING : html`<p>${cutNote(what)}</p>\n`;
    omitted = 0;
    return markup;
  };
  const groupMarkup = (group: ExecutionGroup, isInside: boolean): readonly Markup[] => {
    switch (group.kind) {
      case "child": {
        const before = note();
        return [before, childMarkup(group, end, [...group.groups.flatMap((one) => groupMarkup(one, true)), note()])];
      }
      case "list": {
        // Every item has a row, and as many as fit have a transcript.
        const rows = group.items.executions.map((item) => {
          const anchor = anchors.get(item.key);
          return anchor === undefined ? itemRow(item, end) : section(item, anchor, true, true);
        });
        return [note(), listMarkup(group, end, rows)];
      }
      case "one": {
        const anchor = anchors.get(group.execution.key);
        if (anchor !== undefined) return [note(), section(group.execution, anchor, false, isInside)];
        omitted += 1;
        return [];
      }
    }
  };
  return html`${groups.flatMap((group) => groupMarkup(group, false))}${note()}`;
}

/** A list with its sum; its items are folded. */
function listMarkup(
  { first, fork, items }: Extract<ExecutionGroup, { readonly kind: "list" }>,
  end: number,
  rows: readonly Markup[],
): Markup {
  const { sign, word, tone } = listMark(items);
  const { completed, others, active, executions, total } = items;
  const { usage, turns, startedAt } = sumOf(executions);
  const facts = [
    `${grouped(completed)} done`,
    ...(others > 0 ? [`${grouped(others)} cancelled or skipped`] : []),
    ...(active.length > 0 ? [`${grouped(active.length)} unfinished`] : []),
    ...(executions.length < total ? [`${grouped(total - executions.length)} not begun`] : []),
    milliseconds(workedTogetherMs(executions, end)),
    ...(turns > 0 ? [spending(usage)] : []),
  ];
  return html`<details class="stage list">
<summary><h3><span class="${tone}">${sign}</span> ${exact(first.executionId)} for ${count(total, "item")} <span class="${tone}">${word}</span></h3> <span class="faint">${facts.join(" · ")}</span></summary>
<ul class="facts"><li>from ${moment(startedAt)}</li><li>joined in ${exact(fork.join || "an unknown state")}</li></ul>
${rows}</details>
`;
}

/** A branch or another pipeline, with its executions. */
function childMarkup(
  group: Extract<ExecutionGroup, { readonly kind: "child" }>,
  end: number,
  inside: readonly Markup[],
): Markup {
  const { fork, child, executions } = group;
  const { sign, word, tone } = statusMark(childStatus(group));
  const { usage, turns, startedAt } = sumOf(executions);
  const facts = [milliseconds(workedTogetherMs(executions, end)), ...(turns > 0 ? [spending(usage)] : [])];
  const name =
    child.kind === "branch"
      ? html`branch ${exact(child.key)} <span class="faint">${child.state} to ${child.terminal}</span>`
      : html`pipeline ${exact(child.pipeline)} <span class="faint">as ${child.key}</span>`;
  return html`<details class="stage list" open>
<summary><h3><span class="${tone}">${sign}</span> ${name} <span class="${tone}">${word}</span></h3> <span class="faint">${facts.join(" · ")}</span></summary>
<ul class="facts"><li>from ${moment(startedAt)}</li><li>${fork.from === fork.join ? "part of" : "joined in"} ${exact(fork.join || "an unknown state")}</li></ul>
${inside}</details>
`;
}

/** An item without its transcript. */
function itemRow(execution: ExecutionView, end: number): Markup {
  const { sign, word, tone } = statusMark(execution.status);
  return html`<p class="item"><span class="${tone}">${sign}</span> ${itemName(execution)} <span class="${tone}">${word}</span> <span class="faint">${factsOf(execution, end).join(" · ")}</span></p>\n`;
}

function itemName({ item, stateId }: ExecutionView): Markup {
  return exact(item ?? stateId);
}

function factsOf(execution: ExecutionView, end: number): readonly string[] {
  const { attempt, turns, turnCap, usage, sleeps } = execution;
  return [
    ...(attempt > 1 ? [count(attempt, "attempt")] : []),
    // A state without a model has none.
    ...(turns > 0 || turnCap !== undefined ? [count(turns, "turn")] : []),
    milliseconds(workedMs(execution, end)),
    ...(sleeps > 0 ? [count(sleeps, "sleep")] : []),
    ...(turns > 0 ? [spending(usage)] : []),
  ];
}

interface StageOptions {
  /** Epoch milliseconds of the run's last event. */
  readonly end: number;
  readonly share: number;
  readonly isOpen: boolean;
  readonly anchor: string;
  /** Whether it is below its list. */
  readonly isItem: boolean;
  /** Whether it is below its list, branch or pipeline, which says where it is joined. */
  readonly isInside: boolean;
}

function stageMarkup(execution: ExecutionView, { end, share, isOpen, anchor, isItem, isInside }: StageOptions): Markup {
  const { status, startedAt, fork, tools, fault, key, handles, interrupted, nextWakeAt } = execution;
  const { sign, word, tone } = statusMark(status);
  const facts = factsOf(execution, end);
  const envelope = tools === undefined ? [] : [`envelope: ${tools.length === 0 ? "no tools" : tools.join(", ")}`];
  const files = handles === undefined || handles.files.length === 0 ? "" : ` (${handles.files.join(", ")})`;
  const detours = [
    ...(handles === undefined ? [] : [`handles ${handles.interrupt}${files} for ${handles.of}`]),
    ...(interrupted === undefined ? [] : [`waits for ${interrupted.by}, which handles ${interrupted.interrupt}`]),
  ];
  const join = fork === undefined || isInside ? [] : [`in parallel, joined in ${fork.join || "an unknown state"}`];
  const wake =
    nextWakeAt === undefined
      ? []
      : [polledText(execution), `wakes at ${moment(nextWakeAt)}`].filter((note) => note !== "");
  const notes = [`from ${moment(startedAt)}`, ...wake, ...envelope, ...detours, ...join].map(
    (note) => html`<li>${note}</li>`,
  );
  return html`<details class="stage" id="${anchor}" data-stage="${key}"${isOpen ? html` open` : NOTHING}>
<summary><h3><span class="${tone}">${sign}</span> ${isItem ? itemName(execution) : exact(executionName(execution))} <span class="${tone}">${word}</span></h3> <span class="faint">${facts.join(" · ")}</span></summary>
<ul class="facts">${notes}</ul>
${fault === undefined ? NOTHING : html`<p class="bad"><span class="label">why</span> ${shortText(fault, LONGEST_FAULT)}</p>\n`}${transcript(execution, share)}</details>
`;
}
