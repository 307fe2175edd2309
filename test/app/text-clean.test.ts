import { visible } from "@sluice/core/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clean, cleanInline, headOf, revealed, spanOf, tailOf } from "../../packages/view/src/text/clean.ts";
import { faultsIn, nastyText, plainOf } from "../support/nasty-text.ts";

describe("clean", () => {
  test.each([
    ["colours", "a\u001b[31mred\u001b[0m", "ared"],
    ["text made invisible by a terminal", "a\u001b[8mhidden\u001b[28mb", "ahiddenb"],
    ["a link keeps its words", "\u001b]8;;http://evil\u0007words\u001b]8;;\u0007", "words"],
    ["the clipboard is not set", "a\u001b]52;c;cm0=\u001b\\b", "ab"],
    ["a device control string", "a\u001bPq#0\u001b\\b", "ab"],
    ["eight-bit controls", "a\u009b2Jb\u009dtitle\u009cc", "abc"],
    [
      "a sequence that was never ended does not swallow what follows",
      "a\u001b]0;title and the rest",
      "a0;title and the rest",
    ],
    ["a sequence inside a sequence", "\u001b\u001b[31m[31mx", "[31mx"],
    ["returns are line breaks, so that nothing is written over", "good\rbad\r\nend", "good\nbad\nend"],
    ["other line breaks", "a\u2028b\u2029c\u0085d\ve", "a\nb\nc\nd\ne"],
    ["backspaces and bells", "rm\b\bls\u0007", "rmls"],
    ["bidirectional controls", "a\u202ecba\u2066x", "acbax"],
    ["what has no width", "pass\u200bwo\u2060rd\ufeff", "password"],
    ["fillers are blanks or nothing", "a\u3164b\u2800c", "ab c"],
    ["tag characters", "a\u{e0041}\u{e007f}b", "ab"],
    ["variation selectors", "❤\ufe0f a\u{e0100}", "❤ a"],
    ["other spaces are spaces", "a\u00a0b\u3000c", "a b c"],
    ["half characters and private ones have no shape of their own", "a\ud83d\ue000b", "a\ufffd\ufffdb"],
    ["modifiers that terminals draw differently", "👍\u{1f3fd}", "👍"],
    ["tabs reach to the next fourth column", "a\tb\n\tc", "a   b\n    c"],
    ["piled-up marks", `z${"\u0301".repeat(50)}a`, "z\u0301\u0301\u0301a"],
    ["marks without a letter", "\u0338a \u0338b\n\u0338c", "a b\nc"],
  ])("%s", (_, text, expected) => {
    expect(clean(text)).toBe(expected);
  });

  test("ordinary text of all languages stays", () => {
    const text = "naïve 日本語 ไทยกำ हिन्दी عربي עִבְרִית 👍 🇩🇪\n  two";
    expect(clean(text)).toBe(text);
  });

  test("nothing is left that a terminal acts on, and cleaning again changes nothing", () => {
    fc.assert(
      fc.property(nastyText(), (text) => {
        const once = clean(text);
        expect(visible(once)).toBe(once);
        expect(clean(once)).toBe(once);
        expect(cleanInline(text)).not.toContain("\n");
      }),
      { numRuns: 300 },
    );
  });

  test("on one line a line break is seen", () => {
    expect(cleanInline("a\nb\u2028c")).toBe("a⏎b⏎c");
    expect(spanOf("a\n\u001b[1mb", "bad")).toEqual({ text: "a⏎b", style: "bad" });
    expect(spanOf("a")).toEqual({ text: "a" });
  });
});

describe("revealed", () => {
  const shown = (text: string): string =>
    revealed(text)
      .map((span) => (span.style === "unseen" ? `<${span.text}>` : span.text))
      .join("");

  test.each([
    ["ls\u200b -la", "ls<·U+200B> -la"],
    ["a\u001b[31mb", "a<·U+001B>[31mb"],
    ["a\nb\tc", "a<⏎>b<→>c"],
    ["x\u202e\u202e\u202ey", "x<·U+202E×3>y"],
    ["rm\u00a0-rf", "rm<·U+00A0>-rf"],
    ["a\u{e0041}", "a<·U+E0041>"],
    ["a\ud800", "a<·U+D800>"],
    [`e\u0301${"\u0301".repeat(9)}`, `e\u0301\u0301\u0301<·U+0301×7>`],
    ["\u200b\u0301a", "<·U+200B><·U+0301>a"],
    ["👍\u{1f3fd}", "👍<·U+1F3FD>"],
    ["plain 日本", "plain 日本"],
  ])("%j is shown as %s", (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  test("no two texts that differ look the same", () => {
    fc.assert(
      fc.property(nastyText(20), nastyText(20), (a, b) => {
        if (a === b) return;
        expect(JSON.stringify(revealed(a))).not.toBe(JSON.stringify(revealed(b)));
      }),
      { numRuns: 300 },
    );
  });

  test("it is one line of safe spans", () => {
    fc.assert(
      fc.property(nastyText(), (text) => {
        expect(faultsIn([revealed(text)], Number.POSITIVE_INFINITY)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("of a very long text the rest is shown as a number", () => {
    const line = revealed("x".repeat(10_000_000), "code", 100);
    expect(plainOf(line)).toBe(`${"x".repeat(100)} … 9999900 characters more`);
    expect(revealed("\u200b".repeat(1_000_000)).length).toBeLessThan(5);
  });
});

test("a text is never cut in the middle of a character of two units", () => {
  expect([headOf("a😀b", 2), headOf("a😀b", 3), headOf("ab", 5)]).toEqual(["a", "a😀", "ab"]);
  expect([tailOf("a😀b", 2), tailOf("a😀b", 3), tailOf("ab", 5)]).toEqual(["b", "😀b", "ab"]);
});
