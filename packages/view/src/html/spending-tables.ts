import type { Usage } from "@sluice/core";
import { usageByModel } from "../projection/execution-reducer.ts";
import { type ExecutionGroup, flatGroupsOf, sumOf } from "../projection/graph/stations.ts";
import type { RunView } from "../projection/run-view.ts";
import { workedMs, workedTogetherMs } from "../projection/time/rests.ts";
import { executionName } from "../words/describe-event.ts";
import { modelText } from "../words/fields.ts";
import { moneyOf } from "../words/symbols.ts";
import { count, grouped, milliseconds } from "../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { listMark, statusMarkup } from "./markup/status.ts";
import { table } from "./markup/table.ts";
import { shortText } from "./markup/texts.ts";

const USAGE = ["#tokens in", "#tokens out", "#cost"];

/** The usage of each stage and each model. */
export function spendingMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, usage, updatedAt } = view;
  const heads = ["stage", "status", "#attempts", "#turns", ...USAGE, "#time"];
  const stages = table("Usage by stage", heads, flatGroupsOf(view), (group) => {
    if (group.kind === "list") return listRow(group, { end: updatedAt, anchors });
    const { execution } = group;
    return [
      linkTo(anchors.get(execution.key), exact(executionName(execution))),
      statusMarkup(execution.status),
      html`${execution.attempt}`,
      html`${execution.turns}${execution.turnCap === undefined ? "" : ` (cap ${execution.turnCap})`}`,
      ...amounts(execution.usage),
      html`${milliseconds(workedMs(execution, updatedAt))}`,
    ];
  });
  const models = table("Usage by model", ["model", "#turns", ...USAGE], usageByModel(executions), (spent) => [
    exact(modelText(spent.model)),
    html`${spent.turns}`,
    ...amounts(spent.usage),
  ]);
  const { unpricedCalls = 0, unmeteredCalls = 0 } = usage;
  const notes = [
    unpricedCalls > 0 ? `${count(unpricedCalls, "call")} of unknown price: the cost does not include them.` : "",
    unmeteredCalls > 0 ? `${count(unmeteredCalls, "call")} of unknown usage.` : "",
  ].filter((one) => one !== "");
  return html`${stages}${models}${notes.length === 0 ? NOTHING : html`<p class="notice">${notes.join(" ")}</p>`}`;
}

/** The sum of a list; its section has the items. */
function listRow(
  { first, items }: Extract<ExecutionGroup, { readonly kind: "list" }>,
  { end, anchors }: { readonly end: number; readonly anchors: ReadonlyMap<string, string> },
): readonly Markup[] {
  const { usage, turns } = sumOf(items.executions);
  const { sign, word, tone } = listMark(items);
  const attempts = items.executions.reduce((sum, { attempt }) => sum + attempt, 0);
  return [
    html`${linkTo(anchors.get(first.key), exact(first.executionId))} <span class="faint">${count(items.total, "item")}</span>`,
    html`<span class="${tone}">${sign} ${word}</span>`,
    html`${attempts}`,
    html`${turns}`,
    ...amounts(usage),
    html`${milliseconds(workedTogetherMs(items.executions, end))}`,
  ];
}

function amounts(usage: Usage): readonly Markup[] {
  return [grouped(usage.inputTokens), grouped(usage.outputTokens), moneyOf(usage) || "–"].map((one) => html`${one}`);
}

/** The limits that were near or reached. */
export function capsMarkup({ caps, executions }: RunView): Markup {
  if (caps.length === 0) return html`<p>No limit was near.</p>`;
  const names = new Map(executions.map((execution) => [execution.key, executionName(execution)]));
  const heads = ["where", "limit", "status", "used", "message"];
  return table("Limits that were near or reached", heads, caps, ({ key, limit, message, reached, used, max }) => [
    exact((key === undefined ? undefined : names.get(key)) ?? "the run"),
    exact(limit),
    reached ? html`<span class="bad">✖ reached</span>` : html`<span class="notice">! near</span>`,
    html`${used === undefined ? "" : grouped(used)}${max === undefined ? "" : ` of ${grouped(max)}`}`,
    shortText(message, 1_000),
  ]);
}
