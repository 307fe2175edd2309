import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const here = import.meta.dirname;
const source = globSync("*.test.ts", { cwd: here })
  .map((file) => readFileSync(join(here, file), "utf8"))
  .join("\n");

test("each of the facts 1 to 83 has a test, named by its number", () => {
  const numbers = new Set(
    [...source.matchAll(/^\s*(?:fact|ours|decided)\(\s*(\d+),/gm)].map(([, number]) => Number(number)),
  );
  const all = Array.from({ length: 83 }, (_, at) => at + 1);
  expect(all.filter((number) => !numbers.has(number))).toEqual([]);
});

test("each of the defects D1 to D19 has a test, named by its number", () => {
  const all = Array.from({ length: 19 }, (_, at) => `D${at + 1}`);
  expect(all.filter((name) => !new RegExp(`(?:defect|test)\\(\\s*["'\`]${name}\\b`).test(source))).toEqual([]);
});
