import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./pages.ts";

/** What makes errors besides `new SluiceError("Class", "code", …)`: functions that add the class, by name. */
const MAKERS: Readonly<Record<string, string>> = {
  problemsError: "Validation",
  storeError: "Host",
  misuse: "Host",
  fault: "ToolTerminal",
  loadPackage: "Session",
};
/** Where a code comes from a parameter: the bodies of the makers, and an error that is handed on. */
const OPEN_CALLS = [
  'packages/core/src/base/errors.ts: "Validation", code',
  'packages/core/src/journal/host/step-runner.ts: "Host", code',
  'packages/sqlite/src/faults.ts: "Host", code',
  "packages/stages/src/models/cassettes/values.ts: errorClass, code",
  'packages/stages/src/models/providers/settings.ts: "Session", code',
  'packages/stages/src/tools/files/results.ts: "ToolTerminal", code',
  "packages/cli/src/project/load/load.ts: thrown.class, thrown.code",
  "packages/cli/src/commands/acp/action.ts: thrown.class, thrown.code",
];

export interface Source {
  readonly path: string;
  readonly text: string;
}

export function readSources(pattern = "packages/*/src/**/*.ts"): readonly Source[] {
  return globSync(pattern, { cwd: root })
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Every `Class code` that the packages can throw, and the places this reading cannot follow. */
export function thrownIn(sources: readonly Source[]): {
  readonly codes: ReadonlySet<string>;
  readonly unread: readonly string[];
} {
  const codes = new Set<string>();
  const unread: string[] = [];
  for (const { path, text } of sources) {
    for (const [, first = "", second = ""] of text.matchAll(/new SluiceError\(\s*([^,]+),\s*([^,]+),/g)) {
      const [className, code] = [literal(first), literal(second) ?? constantIn(sources, second)];
      if (className !== undefined && code !== undefined) codes.add(`${className} ${code}`);
      else if (!OPEN_CALLS.includes(`${path}: ${first}, ${second}`)) unread.push(`${path}: ${first}, ${second}`);
    }
    for (const [, maker = "", code = ""] of text.matchAll(/(?<![\w.])(\w+)\(\s*"([a-z][a-z0-9_]*)"/g)) {
      const className = MAKERS[maker];
      if (className !== undefined && text.includes(maker)) codes.add(`${className} ${code}`);
    }
  }
  return { codes, unread };
}

/** The codes of results that a tool, or the loop around it, gives a model. */
export function answeredIn(sources: readonly Source[]): ReadonlySet<string> {
  const codes = new Set<string>();
  for (const { text } of sources) {
    for (const [, code = ""] of text.matchAll(/(?<![\w.])(?:failure|failed|none)\(\s*"([a-z_]+)"/g)) codes.add(code);
    for (const [, code = ""] of text.matchAll(/output(?:: | = )\{ code: "([a-z_]+)"/g)) codes.add(code);
  }
  return codes;
}

/** A code that several files share. */
function constantIn(sources: readonly Source[], name: string): string | undefined {
  if (!/^[A-Z_]+$/.test(name.trim())) return undefined;
  const found = sources.map(({ text }) => new RegExp(`const ${name.trim()} = "(\\w+)"`).exec(text)?.[1]);
  return found.find((code) => code !== undefined);
}

function literal(text: string): string | undefined {
  return /^"([A-Za-z][A-Za-z0-9_]*)"$/.exec(text.trim())?.[1];
}
