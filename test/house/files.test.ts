import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { readSources, root } from "./sources.ts";

const mostLines = 350;

test(`no source file has more than ${mostLines} lines`, () => {
  const tooLong = readSources().filter((file) => file.lines > mostLines);
  expect(tooLong.map((file) => `${file.path}: ${file.lines}`)).toEqual([]);
});

// Each folder of test/ is a project; what lies beside them would never run.
test("every test file is in a folder of its area", () => {
  expect(globSync("test/*.test.*", { cwd: root })).toEqual([]);
  expect(
    globSync("{test,packages,examples,bench}/**/*.{test,spec}.*", {
      cwd: root,
      exclude: ["**/node_modules/**"],
    }).filter((path) => !/^test[\\/].*\.test\.ts$/.test(path)),
  ).toEqual([]);
});
