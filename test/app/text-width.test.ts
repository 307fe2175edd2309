import fc from "fast-check";
import stringWidth from "string-width";
import { describe, expect, test } from "vitest";
import { clean, cleanInline } from "../../packages/view/src/text/clean.ts";
import { fold, moreLine } from "../../packages/view/src/text/fold.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { createPalette, paint } from "../../packages/view/src/text/paint.ts";
import { cut, fitting, pad, widthOf, wrap } from "../../packages/view/src/text/width.ts";
import { faultsIn, hugeTexts, nastyText, plainOf, plainRows, someWidth } from "../support/nasty-text.ts";

const nastyLine: fc.Arbitrary<Line> = fc
  .array(nastyText(20), { maxLength: 4 })
  .map((texts) =>
    texts.map((text, at) =>
      at % 2 === 0 ? { text: cleanInline(text) } : { text: cleanInline(text), style: "code" as const },
    ),
  );

describe("width", () => {
  test.each([
    ["abc", 3],
    ["日本", 4],
    ["e\u0301", 1],
    ["👍", 2],
    ["🇩🇪", 2],
    // Terminals that know no clusters draw these in two columns.
    ["กำ", 2],
    ["क्ष", 2],
    ["ᄀ", 2],
    ["\u1100\u1161\u11a8", 2],
    ["─✔", 2],
    ["", 0],
  ])("%s takes %d columns", (text, width) => {
    expect(widthOf(text)).toBe(width);
  });

  test("it is never less than what the renderer counts", () => {
    fc.assert(
      fc.property(nastyText(), (text) => {
        const line = cleanInline(text);
        expect(widthOf(line)).toBeGreaterThanOrEqual(stringWidth(line));
      }),
      { numRuns: 300 },
    );
    for (let code = 0x20; code < 0x3_0000; code += 1) {
      const character = code >= 0xd800 && code < 0xe000 ? "" : String.fromCodePoint(code);
      if (clean(character) === character && widthOf(character) !== stringWidth(character))
        expect.fail(`U+${code.toString(16)}`);
    }
  });

  test("how much fits ends between characters", () => {
    expect(fitting("a日本", 0, 3)).toEqual({ end: 2, width: 3 });
    expect(fitting("a日本", 0, 4)).toEqual({ end: 2, width: 3 });
    expect(fitting("e\u0301e\u0301", 0, 1)).toEqual({ end: 2, width: 1 });
    expect(fitting("👍👍", 2, 9)).toEqual({ end: 4, width: 2 });
  });
});

describe("cut and pad", () => {
  test("what is cut off leaves a mark in the style it was cut in", () => {
    const line: Line = [{ text: "hello " }, { text: "日本", style: "code" }];
    expect(cut(line, 10)).toBe(line);
    expect(cut(line, 9)).toEqual([{ text: "hello " }, { text: "日", style: "code" }, { text: "…", style: "code" }]);
    expect(plainOf(cut(line, 8))).toBe("hello …");
    expect(plainOf(cut(line, 1))).toBe("…");
    expect(cut(line, 0)).toEqual([]);
  });

  test("a padded line takes its columns exactly", () => {
    expect(plainOf(pad([{ text: "日" }], 4))).toBe("日  ");
    expect(plainOf(pad([{ text: "ab" }], 4, "left"))).toBe("  ab");
    fc.assert(
      fc.property(nastyLine, someWidth, (line, width) => {
        expect(widthOf(pad(line, width))).toBe(width);
        expect(faultsIn([pad(line, width)], width)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

describe("wrap", () => {
  test.each([
    ["between words", "hello brave new world", 11, ["hello brave", "new world"]],
    ["inside a word that is longer than a row", "a abcdefghij", 4, ["a", "abcd", "efgh", "ij"]],
    ["anywhere in writing without spaces", "ab日本語日本語", 6, ["ab日本", "語日本", "語"]],
    ["not in front of a closing sign", "日本語。日本", 6, ["日本", "語。日", "本"]],
    ["indents stay", "    code here", 9, ["    code", "here"]],
    ["spaces at a break are dropped", "ab      cd", 4, ["ab", "cd"]],
    ["nothing is a row too", "", 9, [""]],
  ])("%s", (_, text, width, rows) => {
    expect(plainRows(wrap([{ text }], width))).toEqual(rows);
  });

  test("spans keep their styles over a break", () => {
    expect(wrap([{ text: "one " }, { text: "two three", style: "strong" }], 8)).toEqual([
      [{ text: "one " }, { text: "two", style: "strong" }],
      [{ text: "three", style: "strong" }],
    ]);
  });

  test("a number of rows is kept to, and the last says that there is more", () => {
    expect(plainRows(wrap([{ text: "aaa bbb ccc ddd" }], 7, 1))).toEqual(["aaa bb…"]);
    expect(plainRows(wrap([{ text: "aaa bbb ccc" }], 8, 2))).toEqual(["aaa bbb", "ccc"]);
  });

  test("rows fit and no character that is seen is lost", () => {
    fc.assert(
      fc.property(nastyLine, someWidth, (line, width) => {
        const rows = wrap(line, width);
        expect(faultsIn(rows, width)).toEqual([]);
        expect(plainRows(rows).join("").replaceAll(" ", "")).toBe(plainOf(line).replaceAll(" ", ""));
      }),
      { numRuns: 400 },
    );
  });

  test.each(hugeTexts)("10 MB of %s cost what is shown", (_, huge) => {
    const line = [{ text: huge.replaceAll("\n", " ") }];
    const rows = wrap(line, 80, 40);
    expect(rows.length).toBeLessThanOrEqual(40);
    expect(rows.flat().reduce((sum, span) => sum + span.text.length, 0)).toBeLessThan(40 * 81);
    expect(plainOf(cut(line, 80)).length).toBeLessThanOrEqual(80);
  });
});

describe("fold", () => {
  const lines = Array.from({ length: 20 }, (_, at): Line => [{ text: String(at) }]);

  test("what is too long keeps its beginning and its end, and says how much is missing and what shows it", () => {
    expect(plainRows(fold(lines, 7, "Ctrl+O"))).toEqual(["0", "1", "2", "3", "… 14 lines more (Ctrl+O)", "18", "19"]);
    expect(fold(lines, 20)).toBe(lines);
    expect(plainRows(fold(lines, 1))).toEqual(["… 20 lines more"]);
    expect(plainRows(fold(lines.slice(0, 2), 5, undefined, 10))).toEqual(["0", "1", "… 10 lines more"]);
    expect(plainOf(moreLine(1))).toBe("… 1 line more");
  });
});

describe("paint", () => {
  const colours = createPalette({ colour: true });
  const none = createPalette({ colour: false });

  test("each piece ends with a reset", () => {
    expect(paint([{ text: "a" }, { text: "b", style: "bad" }, { text: "c" }], colours)).toBe("a\u001b[31mb\u001b[0mc");
  });

  test("only colours that can be read on any ground are used, and a ground only for what is selected", () => {
    for (const look of Object.values(colours)) expect(look).toMatch(/^(?:(?:[12347]|3[12456])(?:;|$))*$/);
    expect(Object.entries(colours).filter(([, look]) => look.split(";").includes("7"))).toEqual([["selected", "7"]]);
  });

  test("without colour text is at most bold, underlined or turned round", () => {
    for (const look of Object.values(none)) expect(look).toMatch(/^(?:[147](?:;|$))*$/);
  });

  test("what a span must not hold does not get out", () => {
    fc.assert(
      fc.property(nastyText(), (text) => {
        const painted = paint([{ text, style: "bad" }], colours);
        expect(faultsIn([[{ text: painted.slice(5, -4) }]], Number.POSITIVE_INFINITY)).toEqual([]);
      }),
    );
  });
});
