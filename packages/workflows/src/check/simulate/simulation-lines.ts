// A simulated run as people read it.

import type { PipelineSpec } from "@sluice/core";
import { visibleLine } from "@sluice/core/runtime";
import { nameOf } from "../finding.ts";
import { choiceLabel } from "../labels.ts";
import { type DecidedRow, endWords, type Simulation } from "./simulate.ts";

/** The decisions of a simulation, each with a table of its candidate rows, and how it ends. One entry is one line of text. */
export function simulationLines(spec: PipelineSpec, { hops, end, waits, fault }: Simulation): readonly string[] {
  const lines = hops.flatMap(({ state, what, rows, follows }, index) => {
    const where = state === undefined ? "" : `${nameOf(spec, state)}: `;
    return [`${index + 1}. ${where}${what}`, ...tableOf(spec, rows), `   => ${follows}`];
  });
  if (fault !== undefined) lines.push(`outcome ${fault.outcome + 1} does not fit: ${fault.message}`);
  if (end !== undefined) lines.push(endWords(spec, end));
  else if (waits !== undefined) lines.push(waitWords(spec, waits));
  return lines.map(visibleLine);
}

function waitWords(
  spec: PipelineSpec,
  { for: what, state, events, children }: NonNullable<Simulation["waits"]>,
): string {
  const name = nameOf(spec, state);
  if (what === "approval") return `the run waits in ${name} for an approval`;
  if (what === "children") return `the run waits for its children ${children.join(", ")}`;
  const sends = events.length === 0 ? "" : `; it may send ${events.map(({ event }) => event).join(", ")}`;
  return `the run waits for an outcome of ${name}${sends}`;
}

const SIGNS = { fired: "✔", "did not fire": "✘", "not asked": "·" } as const;

function tableOf(spec: PipelineSpec, rows: readonly DecidedRow[]): readonly string[] {
  const cells = rows.map((row) => {
    const { label, on, when, approval, verdict, why } = row;
    const condition = [
      ...(when === undefined ? [] : [`when ${when}`]),
      ...(approval ? ["asks for approval"] : []),
    ].join(", ");
    return [SIGNS[verdict], label ?? on, targetOf(spec, row), condition, `${verdict}: ${why}`];
  });
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...cells.map((row) => (row[column] ?? "").length)));
  return cells.map(
    (row) =>
      `   ${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()}`,
  );
}

function targetOf(spec: PipelineSpec, { row }: DecidedRow): string {
  const { routes } = spec;
  const to = routes.kind === "table" ? routes.rows[row]?.to : undefined;
  return to === undefined ? "" : `-> ${choiceLabel(spec, to)}`;
}
