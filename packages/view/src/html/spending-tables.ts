import type { Usage } from "@sluice/core";
import { addUsage } from "@sluice/core/runtime";
import { NO_USAGE } from "../projection/execution-reducer.ts";
import type { ExecutionView, RunView } from "../projection/run-view.ts";
import { moneyOf } from "../words/symbols.ts";
import { count, milliseconds } from "../words/words.ts";
import { exact, html, linkTo, type Markup, NOTHING } from "./markup/markup.ts";
import { statusMark } from "./markup/status.ts";
import { table } from "./markup/table.ts";
import { shortText } from "./markup/texts.ts";

const MOST_ROWS = 300;

/** The usage of each stage and each model. */
export function spendingMarkup(view: RunView, anchors: ReadonlyMap<string, string>): Markup {
  const { executions, usage, updatedAt: end } = view;
  const stages = executions.slice(0, MOST_ROWS).map((execution) => stageRow(execution, end, anchors));
  return html`${table(
    {
      caption: "Usage by stage",
      head: ["stage", "status", "attempts", "turns", "tokens in", "tokens out", "cost", "time"],
      numbers: [2, 3, 4, 5, 6, 7],
    },
    stages,
    executions.length,
  )}${table(
    {
      caption: "Usage by model",
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
      const sum = models.get(model) ?? { usage: NO_USAGE, turns: 0 };
      models.set(model, { usage: addUsage(sum.usage, usage), turns: sum.turns + turns });
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
  const notes = [
    unpricedCalls > 0 ? `${count(unpricedCalls, "call")} of unknown price: the cost does not include them.` : "",
    unmeteredCalls > 0 ? `${count(unmeteredCalls, "call")} of unknown usage.` : "",
  ].filter((one) => one !== "");
  return notes.length === 0 ? NOTHING : html`<p class="notice">${notes.join(" ")}</p>`;
}

export function capsMarkup({ caps, executions }: RunView): Markup {
  if (caps.length === 0) return html`<p>No limit was near.</p>`;
  const rows = caps
    .slice(0, MOST_ROWS)
    .map(({ key, limit, message, reached, used, max }) => [
      exact(executions.find((execution) => execution.key === key)?.executionId ?? "the run"),
      exact(limit),
      reached ? html`<span class="bad">✖ reached</span>` : html`<span class="notice">! near</span>`,
      html`${used === undefined ? "" : used.toLocaleString("en-US")}${max === undefined ? "" : ` of ${max.toLocaleString("en-US")}`}`,
      shortText(message, 1_000),
    ]);
  return table(
    { caption: "Limits that were near or reached", head: ["where", "limit", "status", "used", "message"] },
    rows,
    caps.length,
  );
}
