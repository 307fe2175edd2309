import { expect, test } from "vitest";
import { readSources } from "./sources.ts";

const mostLines = 350;

test(`no source file has more than ${mostLines} lines`, () => {
  const tooLong = readSources().filter((file) => file.lines > mostLines);
  expect(tooLong.map((file) => `${file.path}: ${file.lines}`)).toEqual([]);
});
