import { addUsage, type Usage } from "@sluice/core";
import type { ExecutionView, RunView } from "../projection/run-view.ts";
import { moneyOf } from "../words/symbols.ts";
import { count, milliseconds } from "../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { shortText } from "./markup/texts.ts";
import { statusMark } from "./status.ts";
import { table } from "./tables.ts";

const MOST_ROWS = 300;
const NOTHING_USED: Usage = { inputTokens: 0, outputTokens: 0 };

/** What each stage and each model used, and the caps that were met. */
export function spendingMarkup(view: RunView, end: number, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, usage } = view;
  const stages = executions.slice(0, MOST_ROWS).map((execution) => stageRow(execution, end, anchors));
  return html`${table(
    {
      caption: "What each stage used",
      head: ["stage", "status", "attempts", "turns", "tokens in", "tokens out", "cost", "time"],
      numbers: [2, 3, 4, 5, 6, 7],
    },
    stages,
    executions.length,
  )}${table(
    {
      caption: "What each model used",
      head: ["model", "turns", "tokens in", "tokens out", "cost"],
      numbers: [1, 2, 3, 4],
    },
    modelRows(executions),
  )}${unknown(usage)}`;
}

function stageRow(execution: ExecutionView, end: number, anchors: ReadonlyMap<string, string>): readonly Markup[] {
  const { key, executionId, status, attempt, turns, turnCap, usage, startedAt, endedAt } = execution;
  const { sign, word, tone } = statusMark(status);
  return [
    linkTo(anchors.get(key), exact(executionId)),
    html`<span class="${tone}">${sign} ${word}</span>`,
    html`${attempt}`,
    html`${turns}${turnCap === undefined ? "" : ` (cap ${turnCap})`}`,
    ...amounts(usage),
    html`${milliseconds((endedAt ?? end) - startedAt)}`,
  ];
}

function modelRows(executions: readonly ExecutionView[]): readonly (readonly Markup[])[] {
  const models = new Map<string, { usage: Usage; turns: number }>();
  for (const { spent } of executions)
    for (const { model, usage, turns } of spent) {
      const before = models.get(model) ?? { usage: NOTHING_USED, turns: 0 };
      models.set(model, { usage: addUsage(before.usage, usage), turns: before.turns + turns });
    }
  return [...models].map(([model, { usage, turns }]) => [exact(model), html`${turns}`, ...amounts(usage)]);
}

function amounts(usage: Usage): readonly Markup[] {
  return [
    html`${usage.inputTokens.toLocaleString("en-US")}`,
    html`${usage.outputTokens.toLocaleString("en-US")}`,
    html`${moneyOf(usage) || "–"}`,
  ];
}

function unknown({ unpricedCalls = 0, unmeteredCalls = 0 }: Usage): Markup {
  const said = [
    unpricedCalls > 0 ? `${count(unpricedCalls, "call")} of unknown price: the money is without them.` : "",
    unmeteredCalls > 0 ? `${count(unmeteredCalls, "call")} did not say what they used.` : "",
  ].filter((one) => one !== "");
  return said.length === 0 ? NOTHING : html`<p class="notice">${said.join(" ")}</p>`;
}

export function capsMarkup({ caps, executions }: RunView): Markup {
  if (caps.length === 0) return html`<p>No limit came near.</p>`;
  const rows = caps
    .slice(0, MOST_ROWS)
    .map(({ key, limit, message, reached, used, max }) => [
      exact(executions.find((execution) => execution.key === key)?.executionId ?? "the run"),
      exact(limit),
      reached ? html`<span class="bad">✖ reached</span>` : html`<span class="notice">! came near</span>`,
      html`${used === undefined ? "" : used.toLocaleString("en-US")}${max === undefined ? "" : ` of ${max.toLocaleString("en-US")}`}`,
      shortText(message, 1_000),
    ]);
  return table(
    { caption: "Limits that were met", head: ["where", "limit", "how", "used", "what it said"] },
    rows,
    caps.length,
  );
}
