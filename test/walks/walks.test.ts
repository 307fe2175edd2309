import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BUDGETS } from "./budgets.ts";
import { root } from "./coverage.ts";
import { budgeted, type Measured, measure, WALKS, type WalkName } from "./measure.ts";
import { figuresOf } from "./share.ts";

const measurements = new Map<WalkName, Promise<Measured>>();
/** Each walk is measured once for its tests. */
function measuredOnce(name: WalkName): Promise<Measured> {
  const found = measurements.get(name) ?? measure(name);
  measurements.set(name, found);
  return found;
}

const limited = WALKS.filter((name) => Object.hasOwn(BUDGETS, name));

test.each(limited)("the walk %s takes no more source files than its budget", async (name) => {
  const measured = await measuredOnce(name);
  expect(budgeted(measured)).toBeGreaterThan(0);
  expect(budgeted(measured), `npm run walks -- --list ${name}`).toBeLessThanOrEqual(measured.budget?.atMost ?? 0);
});

test.each(limited)("the walk %s makes no more calls than its budget", async (name) => {
  const { share, budget } = await measuredOnce(name);
  if (budget?.calls === undefined || share === undefined) return;
  const { calls } = figuresOf(share.more);
  expect(calls).toBeGreaterThan(0);
  expect(calls, `npm run walks -- --list ${name}`).toBeLessThanOrEqual(budget.calls);
});

test("two measurements of a walk have the same figures", async () => {
  expect(await measure("resume")).toEqual(await measuredOnce("resume"));
});

// The walks of docs/architecture.md name their files as `core/run/x.ts`, which is packages/core/src/run/x.ts. Each of them has to
// name the files whose code only that walk runs, and no file that has no part in it; a fifth may be otherwise.
const atLeast = 0.8;

const SECTIONS = [
  { heading: "A tool call", walk: "read-call" },
  { heading: "A grant", walk: "grant" },
  { heading: "A route", walk: "route" },
] as const satisfies readonly { readonly heading: string; readonly walk: WalkName }[];

const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
const packages = readdirSync(join(root, "packages"));

describe.each(SECTIONS)("the section `### $heading` of docs/architecture.md", ({ heading, walk }) => {
  test("names the files of its walk, and no others", async () => {
    const section = sectionOf(page, heading);
    expect(section, `docs/architecture.md has no heading "### ${heading}"`).toBeDefined();
    const named = pathsIn(section ?? "");
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);

    const { share } = await measuredOnce(walk);
    const own = Object.keys(share?.own ?? {});
    const part = new Set(Object.keys(share?.more ?? {}));
    const missing = own.filter((path) => !named.includes(path));
    const strange = named.filter((path) => !part.has(path));
    expect(own).not.toEqual([]);
    expect(named, `"### ${heading}" names no source file`).not.toEqual([]);
    expect(1 - missing.length / own.length, `not named:\n${missing.join("\n")}`).toBeGreaterThanOrEqual(atLeast);
    expect(1 - strange.length / named.length, `not on the walk:\n${strange.join("\n")}`).toBeGreaterThanOrEqual(
      atLeast,
    );
  });
});

describe("paths of a section", () => {
  const text =
    "## Walks\n\n### A route\n\n`core/run/stage/leave.ts` -> `core/run/stage/leave.ts`, `tui/screen/screen.tsx`; `run/x.ts`, `core/run`\n\n### A grant\n\n`core/gate/tool.ts`\n";

  test("end where the next section begins, each once", () => {
    expect(pathsIn(sectionOf(text, "A route") ?? "")).toEqual([
      "packages/core/src/run/stage/leave.ts",
      "packages/tui/src/screen/screen.tsx",
    ]);
  });

  test("are missing where the heading is", () => {
    expect(sectionOf(text, "A tool call")).toBeUndefined();
  });
});

/** From a heading of the third level to the next heading. */
function sectionOf(markdown: string, heading: string): string | undefined {
  const lines = markdown.split("\n");
  const from = lines.indexOf(`### ${heading}`);
  if (from < 0) return undefined;
  const length = lines.slice(from + 1).findIndex((line) => /^#{1,3} /.test(line));
  return lines.slice(from + 1, length < 0 ? undefined : from + 1 + length).join("\n");
}

function pathsIn(section: string): readonly string[] {
  const spans = [...section.matchAll(/`([\w-]+)\/([\w./-]+\.tsx?)`/g)];
  const paths = spans.map(([, name = "", path = ""]) => [name, `packages/${name}/src/${path}`] as const);
  return [...new Set(paths.filter(([name]) => packages.includes(name)).map(([, path]) => path))];
}
