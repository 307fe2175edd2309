import { argsSummary } from "@sluice/core";
import { executionKey } from "../../projection/execution-reducer.ts";
import type { CallView, RunView } from "../../projection/run-view.ts";
import { count, milliseconds, moment } from "../../words/words.ts";
import type { ReportFacts } from "../facts.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "../markup/markup.ts";
import { shortText } from "../markup/texts.ts";
import { table } from "../tables.ts";
import { type Decision, decisionsIn } from "./decisions.ts";

const MOST_ROWS = 300;
const LONGEST = 1_000;

const OUTCOMES: Readonly<Record<Decision["outcome"], readonly [sign: string, word: string, tone: string]>> = {
  approved: ["✔", "approved", "good"],
  answered: ["✔", "answered", "good"],
  denied: ["✖", "denied", "bad"],
  deferred: ["⊘", "deferred", "notice"],
  refused: ["✖", "refused", "bad"],
  expired: ["⊘", "expired", "notice"],
  open: ["◆", "waits for an answer", "notice"],
  nobody: ["⊘", "nobody was there", "bad"],
};

/** Grants, denials and questions: what was asked, who decided what, when and why, and the digest it was decided for. */
export function decisionsMarkup(
  { events, view }: Pick<ReportFacts, "events" | "view">,
  anchors: ReadonlyMap<string, string>,
): Markup {
  const { decisions, passed } = decisionsIn(events);
  const counts = [...passed].map(([by, times]) => `${count(times, "call")} by ${by}`);
  const said = counts.length === 0 ? "No call was approved." : `Approved: ${counts.join(", ")}.`;
  if (decisions.length === 0) return html`<p>${said} Nothing was put to people, nothing was refused.</p>`;
  const shown = decisions.slice(0, MOST_ROWS);
  const calls = callsOf(shown, view);
  const rows = shown.map((decision) => rowOf(withSummary(decision, calls), anchors));
  return html`<p>${said} What needed a person or was refused:</p>${table(
    {
      caption: "Grants, denials and questions",
      head: ["when (UTC)", "where", "what", "decision", "who", "why", "digest"],
    },
    rows,
    decisions.length,
  )}`;
}

/** The calls that were decided upon, by their execution, attempt and id. */
function callsOf(decisions: readonly Decision[], { executions }: RunView): ReadonlyMap<string, CallView> {
  const wanted = new Set(decisions.filter(({ kind }) => kind === "call").map(callKey));
  const calls = new Map<string, CallView>();
  for (const { runId, executionId, items } of executions)
    for (const item of items) {
      if (item.kind !== "call") continue;
      const key = callKey({ runId, executionId, attempt: item.attempt, callId: item.callId });
      if (wanted.has(key)) calls.set(key, item);
    }
  return calls;
}

function callKey({
  runId,
  executionId,
  attempt,
  callId,
}: Pick<Decision, "runId" | "executionId" | "attempt" | "callId">): string {
  return JSON.stringify([executionKey(runId, executionId), attempt, callId]);
}

/** A summary that an event holds was made of all of the arguments: what stands under the name of a secret is still in it. */
function withSummary(decision: Decision, calls: ReadonlyMap<string, CallView>): Decision {
  const call = decision.kind === "call" ? calls.get(callKey(decision)) : undefined;
  return call?.input === undefined ? decision : { ...decision, what: argsSummary(call.tool, call.input) };
}

function rowOf(decision: Decision, anchors: ReadonlyMap<string, string>): readonly Markup[] {
  const { kind, runId, executionId, attempt, callId, what, because, askedAt, at, outcome, by, why, digest, used } =
    decision;
  const [sign, word, tone] = OUTCOMES[outcome];
  const when = at ?? askedAt ?? 0;
  const waited =
    askedAt === undefined || at === undefined
      ? NOTHING
      : html` <span class="faint">after ${milliseconds(at - askedAt)}</span>`;
  const anchor = anchors.get(executionKey(runId, executionId));
  const unused =
    outcome === "approved" && kind === "call" && !used ? html` <span class="notice">not used</span>` : NOTHING;
  return [
    html`${moment(when)}${waited}`,
    html`${linkTo(anchor, exact(executionId))} <span class="faint">${attempt > 1 ? `attempt ${attempt} ` : ""}${callId}</span>`,
    html`<code>${shortText(what, LONGEST)}</code>${because === "" ? NOTHING : html`<br><span class="faint">${shortText(because, LONGEST)}</span>`}`,
    html`<span class="${tone}">${sign} ${word}</span>${unused}`,
    exact(by),
    shortText(why, LONGEST),
    html`<code class="digest">${digest}</code>`,
  ];
}
