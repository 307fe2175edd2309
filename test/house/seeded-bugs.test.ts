import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SEEDED_BUGS } from "../support/seeded-bugs.ts";
import { BUGS as TORTURE_BUGS } from "../torture/bugs.ts";
import { parseSource, root } from "./sources.ts";

interface Change {
  readonly name: string;
  /** Below packages. */
  readonly file: string;
  readonly changes: readonly (readonly [find: string, replace: string])[];
}
const seeded = Object.values(SEEDED_BUGS).flat();
const bugs: readonly Change[] = [
  ...seeded.map(({ name, file, find, replace }) => ({ name, file, changes: [[find, replace]] as const })),
  ...TORTURE_BUGS,
];
const sourceOf = (file: string): string => readFileSync(join(root, "packages", file), "utf8");

test("the text that a seeded bug replaces stands in its file exactly once", () => {
  const misfits = bugs.flatMap(({ name, file, changes }) => {
    const source = sourceOf(file);
    const times = changes.map(([find]) => ({ find, count: source.split(find).length - 1 }));
    return times
      .filter(({ count }) => count !== 1)
      .map(({ find, count }) => `${name}: ${count} times in ${file}: ${find}`);
  });
  expect(misfits).toEqual([]);
});

test("a file with a seeded bug differs from the file, and parses", () => {
  for (const { name, file, changes } of bugs) {
    const sound = sourceOf(file);
    const broken = changes.reduce((text, [find, replace]) => text.split(find).join(replace), sound);
    expect(broken, name).not.toBe(sound);
    expect(() => parseSource(file, broken), name).not.toThrow();
  }
});

test("no two seeded bugs of a list have one name, and their tests exist", () => {
  for (const list of [seeded, TORTURE_BUGS]) expect(new Set(list.map(({ name }) => name)).size).toBe(list.length);
  const tests = new Set(seeded.flatMap((bug) => bug.tests));
  expect([...tests].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
