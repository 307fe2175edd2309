import { shortened } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";

test.each([
  ["a text that fits", "abcd", "abcd"],
  ["a longer one", "abcde", "abcd…"],
  ["a pair that fits", "ab😀", "ab😀"],
  ["a pair before the cut", "ab😀c", "ab😀…"],
  ["a pair on the cut", "abc😀", "abc…"],
  ["half of a pair before the cut", "ab\ud83dcd", "ab\ufffdc…"],
])("%s is cut at four characters", (_, text, cut) => {
  expect(shortened(text, 4)).toBe(cut);
});

test("a cut text is a beginning in whole characters, and as long as it may be", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 20 }), (text, most) => {
      const short = shortened(text, most);
      if (text.length <= most) return short === text;
      const head = short.slice(0, -1);
      return short.isWellFormed() && text.startsWith(head) && [most - 1, most].includes(head.length);
    }),
  );
});
