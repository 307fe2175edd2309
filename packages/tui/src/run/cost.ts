import type { Usage } from "@sluice/core";
import {
  type CapView,
  type ExecutionView,
  elapsed,
  flatGroupsOf,
  isUnfinished,
  listStatus,
  type ModelUsage,
  moneyOf,
  type RunView,
  shortCount,
  span,
  stateLabel,
  sumOf,
  symbolOf,
  usageByModel,
  workedMs,
  workedTogetherMs,
} from "@sluice/view";
import { cleanInline, columns, cut, headOf, type Line, type Style } from "@sluice/view/text";
import { count, executionName, modelText, spending } from "@sluice/view/words";

const MAX_MESSAGE = 1_000;

/** The usage of a run by stage and by model, and the caps that it reached or is near. At most `width` columns. */
export function costLines(
  view: RunView,
  { width, now }: { readonly width: number; readonly now: number },
): readonly Line[] {
  if (width < 1) return [];
  const { executions, usage, caps } = view;
  const names = new Map(executions.map((execution) => [execution.key, executionName(execution)]));
  const lines: Line[] = [
    [span("stage", "strong"), span("  usage of each execution", "dim")],
    ...columns([HEAD, ...flatGroupsOf(view).flatMap((group) => groupCells(group, now))], 2),
    [],
    [span("model", "strong"), span("  usage of its turns", "dim")],
    ...columns([["MODEL", "TURNS", "IN", "OUT", "COST"].map(heading), ...usageByModel(executions).map(modelCells)], 1),
    [],
    [span("total  ", "strong"), span(spending(usage))],
    ...unknown(usage),
    ...caps.map((cap) => capLine(cap, names)),
  ];
  return lines.map((line) => cut(line, width));
}

const heading = (text: string): Line => [span(text, "dim")];
const HEAD = ["", "STAGE", "TURNS", "IN", "OUT", "COST", "TIME"].map(heading);

function stageCells(execution: ExecutionView, now: number): readonly Line[] {
  const { status, attempt, turns, turn, turnCap, usage } = execution;
  const { sign, style } = symbolOf(status);
  const tries = attempt > 1 ? [span(` · attempt ${attempt}`, "dim")] : [];
  // The cap limits one attempt.
  const cap = turnCap !== undefined && isUnfinished(status) ? ` (${turn}/${turnCap})` : "";
  return [
    [span(sign, style)],
    [span(stateLabel(executionName(execution))), ...tries],
    [span(`${turns}${cap}`)],
    ...amounts(usage),
    [span(elapsed(workedMs(execution, now)))],
  ];
}

/** A list's sum, and a row for each of its items. */
function groupCells(group: ReturnType<typeof flatGroupsOf>[number], now: number): readonly (readonly Line[])[] {
  if (group.kind === "one") return [stageCells(group.execution, now)];
  const { first, items } = group;
  const { sign, style } = symbolOf(listStatus(items));
  const { usage, turns } = sumOf(items.executions);
  const sum = [
    [span(sign, style)],
    [span(stateLabel(first.executionId)), span(` · ${count(items.total, "item")}`, "dim")],
    [span(String(turns))],
    ...amounts(usage),
    [span(elapsed(workedTogetherMs(items.executions, now)))],
  ];
  return [sum, ...items.executions.map((execution) => stageCells(execution, now))];
}

function modelCells({ model, usage, turns }: ModelUsage): readonly Line[] {
  return [[span(stateLabel(modelText(model)))], [span(String(turns))], ...amounts(usage)];
}

function amounts(usage: Usage): readonly Line[] {
  const texts = [shortCount(usage.inputTokens), shortCount(usage.outputTokens), moneyOf(usage) || "–"];
  return texts.map((text) => [span(text)]);
}

function unknown({ unpricedCalls = 0, unmeteredCalls = 0 }: Usage): readonly Line[] {
  const lines: Line[] = [];
  if (unpricedCalls > 0)
    lines.push([span(`${count(unpricedCalls, "call")} of unknown price: the cost does not include them`, "notice")]);
  if (unmeteredCalls > 0) lines.push([span(`${count(unmeteredCalls, "call")} did not report their usage`, "notice")]);
  return lines;
}

function capLine({ key, limit, message, reached, used, max }: CapView, names: ReadonlyMap<string, string>): Line {
  const name = key === undefined ? undefined : names.get(key);
  const style: Style = reached ? "bad" : "notice";
  const numbers = used === undefined || max === undefined ? "" : ` (${used} of ${max})`;
  const who = name === undefined ? "" : `${stateLabel(name)} `;
  return [
    span(`${reached ? "✖ cap reached" : "⚠ near a cap"}  `, style),
    span(`${who}${stateLabel(limit)}: ${cleanInline(headOf(message, MAX_MESSAGE))}${numbers}`),
  ];
}
