import { argsSummary } from "@sluice/core/gate";
import { executionKey } from "../projection/execution-reducer.ts";
import type { CallView, DecisionView, RunView } from "../projection/run-view.ts";
import type { DecidedRow } from "../words/decision-table.ts";
import { executionName } from "../words/describe-event.ts";
import type { ConsideredTarget } from "../words/fields.ts";
import { hopTarget, type RouteView } from "../words/routes.ts";
import { count, milliseconds, moment } from "../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { table } from "./markup/table.ts";
import { cutNote, shortText } from "./markup/texts.ts";

const LONGEST = 1_000;

const OUTCOMES: Readonly<Record<DecisionView["outcome"], readonly [sign: string, word: string, tone: string]>> = {
  approved: ["✔", "approved", "good"],
  answered: ["✔", "answered", "good"],
  denied: ["✖", "denied", "bad"],
  deferred: ["⊘", "deferred", "notice"],
  refused: ["✖", "refused", "bad"],
  expired: ["⊘", "expired", "notice"],
  open: ["◆", "waiting for an answer", "notice"],
  unanswered: ["⊘", "no interactor", "bad"],
};

/** Requests and refusals: what, who decided, when, why, and the digest. */
export function decisionsMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const { decisions } = view;
  const counts = [...view.approvals].map(([by, times]) => `${count(times, "call")} by ${by}`);
  const approved = counts.length === 0 ? "No call was approved." : `Approved: ${counts.join(", ")}.`;
  if (decisions.length === 0) return html`<p>${approved} No call required a person, and none was refused.</p>`;
  const calls = callsOf(view);
  const heads = ["when (UTC)", "where", "what", "decision", "who", "why", "digest"];
  const rows = table("Grants, denials and questions", heads, decisions, (decision) =>
    decisionRow(decision, decision.kind === "call" ? calls.get(callKey(decision)) : undefined, anchors),
  );
  return html`<p>${approved} Requests and refusals:</p>${rows}`;
}

type CallKey = Pick<DecisionView, "runId" | "executionId" | "attempt" | "callId">;

function callsOf({ executions }: RunView): ReadonlyMap<string, CallView> {
  const calls = new Map<string, CallView>();
  for (const { runId, executionId, items } of executions)
    for (const item of items) {
      if (item.kind !== "call") continue;
      calls.set(callKey({ runId, executionId, attempt: item.attempt, callId: item.callId }), item);
    }
  return calls;
}

function callKey({ runId, executionId, attempt, callId }: CallKey): string {
  return JSON.stringify([executionKey(runId, executionId), attempt, callId]);
}

function decisionRow(
  decision: DecisionView,
  call: CallView | undefined,
  anchors: ReadonlyMap<string, string>,
): readonly Markup[] {
  const { kind, runId, executionId, attempt, callId, because, requestedAt, at, outcome, by, why, digest } = decision;
  const [sign, word, tone] = OUTCOMES[outcome];
  // The event's summary can contain secrets that only their names give away; the transcript's arguments cannot.
  const what = call?.input === undefined ? decision.what : argsSummary(call.tool, call.input);
  const isUnused = outcome === "approved" && kind === "call" && !decision.used;
  return [
    html`${moment(at ?? requestedAt ?? 0)}${requestedAt === undefined || at === undefined ? NOTHING : html` <span class="faint">after ${milliseconds(at - requestedAt)}</span>`}`,
    html`${linkTo(anchors.get(executionKey(runId, executionId)), exact(executionName({ runId, executionId })))} <span class="faint">${attempt > 1 ? `attempt ${attempt} ` : ""}${callId}</span>`,
    html`<code>${shortText(what, LONGEST)}</code>${because === "" ? NOTHING : html`<br><span class="faint">${shortText(because, LONGEST)}</span>`}`,
    html`<span class="${tone}">${sign} ${word}</span>${isUnused ? html` <span class="notice">not used</span>` : NOTHING}`,
    exact(by),
    shortText(why, LONGEST),
    html`<code class="digest">${digest}</code>`,
  ];
}

/** Every decision about a route: from where, by which event, to where, by what and why; folded, the rows that it looked at. */
export function routesMarkup({ routes }: RunView, anchors: ReadonlyMap<string, string>): Markup {
  if (routes.length === 0) return html`<p>No route was decided.</p>`;
  const heads = ["when (UTC)", "from", "event", "to", "decided by", "why"];
  const cells = (route: RouteView): readonly Markup[] => {
    const { at, runId, executionId, event, rationale, by } = route;
    return [
      html`${moment(at)}`,
      linkTo(anchors.get(executionKey(runId, executionId)), exact(executionName({ runId, executionId }))),
      html`${event === "" ? NOTHING : html`<code>${shortText(event, LONGEST_EVENT)}</code>`}${rationale === "" ? NOTHING : html`<br>${shortText(rationale, LONGEST)}`}`,
      targetMarkup(route),
      exact(by),
      shortText(route.why, LONGEST),
    ];
  };
  return table("Routes, and what decided them", heads, routes, cells, belowRoute);
}

/** Folded below a decision: the rows that it looked at, or the targets that a model had. */
function belowRoute(route: RouteView): Markup | undefined {
  return route.considered.length > 0 ? consideredMarkup(route) : rowsMarkup(route);
}

const TARGET_SIGNS: Readonly<Record<ConsideredTarget["verdict"], readonly [sign: string, tone: string]>> = {
  chosen: ["✔", "good"],
  refused: ["✖", "bad"],
  "not chosen": ["○", "faint"],
};

function consideredMarkup({ considered }: RouteView): Markup {
  const heads = ["target", "verdict", "why"];
  const body = considered.slice(0, MOST_ROWS).map(({ to, verdict, why }) => {
    const [sign, tone] = TARGET_SIGNS[verdict];
    const cells = [
      shortText(to, LONGEST_EVENT),
      html`<span class="${tone}">${sign} ${verdict}</span>`,
      shortText(why, LONGEST),
    ];
    return html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`;
  });
  const left = considered.length - body.length;
  const rest = left > 0 ? html`<tr><td colspan="${heads.length}">${cutNote(count(left, "target"))}</td></tr>` : NOTHING;
  const summary = `${count(considered.length, "target")} considered`;
  return html`<details><summary>${summary}</summary><div class="scroll" tabindex="0"><table class="rows"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>
${body}${rest}</tbody></table></div></details>`;
}

/** UTF-16 units of an event's name, and of a condition. */
const LONGEST_EVENT = 200;

function targetMarkup({ outcome, hop, approved, named }: RouteView): Markup {
  if (named !== undefined) return html`<span class="bad">✖ refused</span> ${shortText(named, LONGEST_EVENT)}`;
  if (hop === undefined) return html`<span class="bad">✖ ${outcome === "stayed" ? "stayed" : "rejected"}</span>`;
  return html`${exact(hopTarget(hop))}${approved ? html` <span class="good">✔ approved</span>` : NOTHING}`;
}

const VERDICTS: Readonly<Record<DecidedRow["verdict"], readonly [sign: string, tone: string]>> = {
  fired: ["✔", "good"],
  "did not fire": ["✖", "bad"],
  "not asked": ["○", "faint"],
};

/** Rows of one decision. */
const MOST_ROWS = 40;

/** The rows that a decision looked at, folded: the condition of each, whether it fired, and why not. */
function rowsMarkup({ rows }: RouteView): Markup | undefined {
  if (rows.length === 0) return undefined;
  const heads = ["row", "waits for", "condition", "leads to", "verdict", "why"];
  const body = rows.slice(0, MOST_ROWS).map(({ row, label, on = "", when, to = "", approval, verdict, why }) => {
    const [sign, tone] = VERDICTS[verdict];
    const cells = [
      exact(label ?? `row ${row}`),
      shortText(on, LONGEST_EVENT),
      when === undefined ? html`<span class="faint">none</span>` : html`<code>${shortText(when, LONGEST_EVENT)}</code>`,
      html`${shortText(to, LONGEST_EVENT)}${approval ? html` <span class="notice">after an approval</span>` : NOTHING}`,
      html`<span class="${tone}">${sign} ${verdict}</span>`,
      shortText(why, LONGEST_EVENT),
    ];
    return html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`;
  });
  const left = rows.length - body.length;
  const rest = left > 0 ? html`<tr><td colspan="${heads.length}">${cutNote(count(left, "row"))}</td></tr>` : NOTHING;
  return html`<details><summary>${count(rows.length, "row")} of the table</summary><div class="scroll" tabindex="0"><table class="rows"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>
${body}${rest}</tbody></table></div></details>`;
}
