// What `npm run walks` starts: prints a table, the functions of one walk with --list, or everything as JSON.
import { parseArgs } from "node:util";
import type { Budget } from "./budgets.ts";
import type { Counts } from "./coverage.ts";
import { budgeted, type Measured, measure, WALKS, type WalkName } from "./measure.ts";
import { type Figures, figuresOf } from "./share.ts";

const widths = [9, 21, 15, 10, 15];

const { values } = parseArgs({ options: { list: { type: "string" }, json: { type: "boolean", default: false } } });
const measured: Measured[] = [];
for (const name of chosen(values.list)) measured.push(await measure(name));
const text = values.json ? JSON.stringify(measured.map(asJson), null, 2) : shown(measured, values.list !== undefined);
process.stdout.write(`${text}\n`);

function chosen(list: string | undefined): readonly WalkName[] {
  if (list === undefined) return WALKS;
  const found = WALKS.filter((name) => name === list);
  if (found.length > 0) return found;
  process.stderr.write(`no walk is called ${list}; there are ${WALKS.join(", ")}\n`);
  process.exit(2);
}

function shown(measured: readonly Measured[], list: boolean): string {
  return list ? measured.map(listOf).join("\n") : table(measured);
}

function table(measured: readonly Measured[]): string {
  const rows = measured.map((one) => {
    const { name, all, share, modules, budget } = one;
    const files = budgeted(one);
    return [
      name,
      // Some calls of a whole process depend on its timing.
      share === undefined ? short(figuresOf(all), false) : short(figuresOf(all)),
      share === undefined ? `${modules} modules` : short(figuresOf(share.more)),
      share === undefined ? "" : short(figuresOf(share.own), false),
      budget === undefined ? "" : budgetText(files, share === undefined ? 0 : figuresOf(share.more).calls, budget),
    ];
  });
  const head = ["walk", "files/functions/calls", "more often", "only here", "budget in files, calls"];
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [...lines, "", ...measured.map(({ name, about }) => `${name.padEnd(9)} ${about}`)].join("\n");
}

function budgetText(files: number, calls: number, { atMost, calls: most = Number.POSITIVE_INFINITY }: Budget): string {
  const text =
    most === Number.POSITIVE_INFINITY ? `${files} of ${atMost}` : `${files} of ${atMost}, ${calls} of ${most}`;
  return files > atMost || calls > most ? `${text} MISSED` : text;
}

function short({ files, functions, calls }: Figures, withCalls = true): string {
  return `${files} / ${functions}${withCalls ? ` / ${calls}` : ""}`;
}

function listOf({ name, about, all, share }: Measured): string {
  const counts = share?.more ?? all;
  const files = Object.keys(counts).sort();
  const lines = files.map(
    (file) => `${share?.own[file] === undefined ? " " : "*"} ${file}\n    ${calls(counts, file)}`,
  );
  const key = share === undefined ? "" : "; * has functions that only the walk runs";
  return [`${name}: ${about}: ${files.length} files${key}`, ...lines].join("\n");
}

function calls(counts: Counts, file: string): string {
  const byName = new Map<string, number>();
  for (const [key, count] of Object.entries(counts[file] ?? {})) {
    const name = key.slice(0, key.lastIndexOf("@")) || "(anonymous)";
    byName.set(name, (byName.get(name) ?? 0) + count);
  }
  return [...byName].map(([name, count]) => `${name} ${count}`).join(", ");
}

function asJson({ all, share, ...rest }: Measured) {
  const figures = { all: figuresOf(all), more: share && figuresOf(share.more), own: share && figuresOf(share.own) };
  return { ...rest, figures, files: share ?? { all } };
}
