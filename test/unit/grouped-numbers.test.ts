import { expect, test } from "vitest";
import { count, grouped } from "../../packages/view/src/words/words.ts";

test.each([
  [0, "0"],
  [999, "999"],
  [1_000, "1,000"],
  [12_345, "12,345"],
  [1_234_567, "1,234,567"],
  [-123_456, "-123,456"],
  [1_234.5678, "1,234.5678"],
  [Number.NaN, "NaN"],
])("%d is written as %s", (number, text) => {
  expect(grouped(number)).toBe(text);
});

test("a count has the number in groups, with its word", () => {
  expect([count(1, "call"), count(2_500, "call")]).toEqual(["1 call", "2,500 calls"]);
});
