import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { readSources, root } from "./sources.ts";

const mostLines = 350;

test(`no source file has more than ${mostLines} lines`, () => {
  const tooLong = readSources().filter((file) => file.lines > mostLines);
  expect(tooLong.map((file) => `${file.path}: ${file.lines}`)).toEqual([]);
});

// Each folder of test/ is a project; a test elsewhere would never run.
test("every test file is in a folder of test/", () => {
  expect(
    globSync(["test/*.{test,spec}.*", "test/**/*.spec.*", "packages/*/src/**/*.{test,spec}.*"], {
      cwd: root,
      exclude: ["**/fixtures/**"],
    }),
  ).toEqual([]);
});
