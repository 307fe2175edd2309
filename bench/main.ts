// Measures the cells, prints a table, writes results.json and fails when a budget is missed. See README.md.
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { type Cell, cells, type Finding } from "./cells.ts";
import { alternate } from "./process.ts";

const resultsFile = new URL("results.json", import.meta.url);

const { values: options } = parseArgs({
  options: {
    cell: { type: "string", multiple: true },
    quick: { type: "boolean", default: false },
    "no-assert": { type: "boolean", default: false },
  },
});

const chosen = chosenCells(options.cell);
const results: { cell: string; about: string; findings: readonly Finding[] }[] = [];
let missed = 0;
for (const cell of chosen) {
  process.stdout.write(`${cell.name}: ${cell.about}\n`);
  const rounds = await alternate(cell.workloads, options.quick ? 3 : cell.rounds, { quick: options.quick });
  const findings = cell.judge(rounds);
  results.push({ cell: cell.name, about: cell.about, findings });
  for (const finding of findings) {
    if (isMissed(finding)) missed += 1;
    process.stdout.write(`${row(finding)}\n`);
  }
}
const machine = { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, load: loadavg() };
const written = { quick: options.quick, machine, results };
writeFileSync(resultsFile, `${JSON.stringify(written, null, 2)}\n`);
if (missed > 0) process.stdout.write(`${missed} ${missed === 1 ? "budget" : "budgets"} missed\n`);
process.exitCode = missed > 0 && !options["no-assert"] ? 1 : 0;

function chosenCells(names: readonly string[] | undefined): readonly Cell[] {
  if (names === undefined) return cells;
  const unknown = names.filter((name) => !cells.some((cell) => cell.name === name));
  if (unknown.length === 0) return cells.filter((cell) => names.includes(cell.name));
  process.stderr.write(
    `no cell is called ${unknown.join(", ")}; there are ${cells.map((cell) => cell.name).join(", ")}\n`,
  );
  process.exit(2);
}

/** A value that could not be measured misses its budget. */
function isMissed({ value, atMost }: Finding): boolean {
  return atMost !== undefined && !(value <= atMost);
}

function row(finding: Finding): string {
  const { what, value, unit, atMost } = finding;
  const budget = atMost === undefined ? "" : `at most ${atMost}  ${isMissed(finding) ? "MISSED" : "ok"}`;
  return `  ${what.padEnd(40)} ${shown(value).padStart(10)} ${unit.padEnd(12)} ${budget}`.trimEnd();
}

function shown(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) < 100 ? value.toFixed(3) : value.toFixed(0);
}
