import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test("each of the facts 1 to 76 has one test, named by its number", () => {
  const here = import.meta.dirname;
  const sources = globSync("*.test.ts", { cwd: here }).map((file) => readFileSync(join(here, file), "utf8"));
  const numbers = sources.flatMap((source) =>
    [...source.matchAll(/^ *(?:fact|decided)\(\s*(\d+),/gm)].map(([, number]) => Number(number)),
  );
  expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 76 }, (_, at) => at + 1));
});
