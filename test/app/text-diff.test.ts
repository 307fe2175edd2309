import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { diffLines, editDiff } from "../../packages/view/src/text/diff.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { faultsIn, hugeTexts, nastyText, plainOf, plainRows, someWidth } from "../support/nasty-text.ts";

const width = 80;
const numbered = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join("");
const shown = (before: string | undefined, after: string | undefined, context?: number): readonly string[] =>
  plainRows(diffLines({ path: "a.ts", before, after }, context === undefined ? { width } : { width, context }));

function inStyle(lines: readonly Line[], style: string): readonly string[] {
  return lines.flat().flatMap((span) => (span.style === style ? [span.text] : []));
}

describe("a diff", () => {
  test("has a head with counts, both line numbers, and context around each change", () => {
    const before = numbered(20);
    const after = before.replace("line 5\n", "").replace("line 15\n", "line fifteen\nmore\n");
    expect(shown(before, after, 1)).toEqual([
      "a.ts  +2 −2",
      "      ⋯ 3 unchanged lines",
      " 4  4   line 4",
      " 5    - line 5",
      " 6  5   line 6",
      "      ⋯ 7 unchanged lines",
      "14 13   line 14",
      "15    - line 15",
      "   14 + line fifteen",
      "   15 + more",
      "16 16   line 16",
      "      ⋯ 4 unchanged lines",
    ]);
  });

  test("a single unchanged line between two changes is shown, not told", () => {
    expect(shown("a\nb\nc\n", "A\nb\nC\n", 0)).toEqual([
      "a.ts  +2 −2",
      "1   - a",
      "  1 + A",
      "2 2   b",
      "3   - c",
      "  3 + C",
    ]);
  });

  test("the words that changed are marked in both lines", () => {
    const lines = diffLines(
      { path: "a", before: "const one = load(path);\n", after: "const one = load(path, true);\n" },
      { width },
    );
    expect(inStyle(lines, "addedWord").join("")).toBe(", true");
    expect(inStyle(lines, "removedWord")).toEqual([]);
    const renamed = diffLines({ path: "a", before: "let a = old_name;\n", after: "let a = new_name;\n" }, { width });
    expect([inStyle(renamed, "removedWord"), inStyle(renamed, "addedWord")]).toEqual([["old_name"], ["new_name"]]);
  });

  test("words are compared with the line that is most alike, and not at all where little is", () => {
    const before = "return parse(text);\n";
    const after = "// a remark of its own\nif (empty) return;\nreturn parse(text, how);\n";
    expect(inStyle(diffLines({ path: "a", before, after }, { width }), "addedWord").join("")).toBe(", how");
    const [one, other] = ["first = one two three four;\n", "second(five, six) = seven;\n"];
    expect(inStyle(diffLines({ path: "a", before: one, after: other }, { width }), "addedWord")).toEqual([]);
  });

  test("changed blanks are seen", () => {
    expect(shown("\tif (a) b();\n", "  if (a) b();\n")).toEqual([
      "a.ts  +1 −1",
      "1   - →   if (a) b();",
      "  1 + ··if (a) b();",
    ]);
  });

  test("what cannot be seen is shown", () => {
    const lines = diffLines({ path: "a\u202e.ts", before: "ls\n", after: "ls\u200b\u001b[8m\n" }, { width });
    expect(plainRows(lines)).toEqual(["a·U+202E.ts  +1 −1", "1   - ls", "  1 + ls·U+200B·U+001B[8m"]);
    expect(inStyle(lines, "unseen")).toEqual(["·U+202E", "·U+200B", "·U+001B"]);
  });

  test.each([
    ["a new file", undefined, "a\nb\n", ["a.ts  +2 −0 · new file", "1 + a", "2 + b"]],
    ["a deleted one", "a\n", undefined, ["a.ts  +0 −1 · deleted", "1 - a"]],
    ["an emptied one", "a\n", "", ["a.ts  +0 −1", "1 - a"]],
    [
      "a new file without a line break at its end",
      undefined,
      "a",
      ["a.ts  +1 −0 · new file · no line break at the end", "1 + a"],
    ],
    ["a line break that is added", "a", "a\n", ["a.ts  +0 −0 · line break added at the end · no line changes"]],
    ["a line break that goes", "a\n", "a", ["a.ts  +0 −0 · no line break at the end · no line changes"]],
    ["nothing", "a\n", "a\n", ["a.ts  +0 −0 · no line changes"]],
    ["line ends of all lines", "a\nb\n", "a\r\nb\r\n", ["a.ts  +0 −0 · line endings become CR LF · no line changes"]],
    ["a single other line end", "a\nb\n", "a\r\nb\n", ["a.ts  +1 −1", "1   - a", "  1 + a·U+000D", "2 2   b"]],
  ])("%s", (_, before, after, expected) => {
    expect(shown(before, after)).toEqual(expected);
  });

  test("long lines go on below, and very long ones say how much is missing", () => {
    const rows = shown(undefined, `${"word ".repeat(40)}\n`);
    expect(rows.length).toBe(4);
    expect(rows.slice(2).every((row) => row.startsWith("    "))).toBe(true);
    expect(shown(undefined, "x".repeat(100_000)).join(" ")).toMatch(/… \d+ characters more/);
  });

  test("in a very long line the change is shown, wherever it is", () => {
    const before = `${"x".repeat(500_000)}old tail`;
    const lines = diffLines({ path: "a", before, after: before.replace("old", "new") }, { width });
    expect(inStyle(lines, "removedWord").join("")).toBe("old");
    expect(inStyle(lines, "addedWord").join("")).toBe("new");
    expect(lines.length).toBeLessThan(8);
    expect(plainRows(lines).join("\n")).toContain("… 499940 characters …");
  });

  test("of long lines a character is never shown in halves", () => {
    const long = "x".repeat(2_000);
    for (const [one, other] of [
      ["\u{1f600}", "\u{1f601}"],
      ["\u{1f600}", "\u{1fa00}"],
    ]) {
      const lines = diffLines({ path: "a", before: `${long}${one}`, after: `${long}${other}` }, { width });
      expect([inStyle(lines, "removedWord"), inStyle(lines, "addedWord")]).toEqual([[one], [other]]);
    }
  });

  test("on a narrow screen one number a line is enough", () => {
    const rows = plainRows(diffLines({ path: "a", before: "a\nb\n", after: "a\nc\n" }, { width: 30 }));
    expect(rows).toEqual(["a  +1 −1", "1   a", "2 - b", "2 + c"]);
  });

  test("more than the rows there are is told as a number of lines", () => {
    const rows = plainRows(diffLines({ path: "a", before: undefined, after: numbered(1_000) }, { width, maxLines: 5 }));
    expect(rows).toEqual([
      "a  +1000 −0 · new file",
      "   1 + line 1",
      "   2 + line 2",
      "   3 + line 3",
      "… 997 lines more",
    ]);
    const all = diffLines({ path: "a", before: undefined, after: "a\nb\n" }, { width, maxLines: 3 });
    expect(all).toHaveLength(3);
    expect(plainOf(all.at(-1) ?? [])).toBe("2 + b");
  });

  test("what is too large to compare shows counts and its beginning", () => {
    const [before, after] = [numbered(60_000), numbered(60_000).replaceAll("line", "row")];
    const rows = shown(before, after);
    expect(rows[0]).toBe("a.ts  +60000 −60000 · too large to compare line by line");
    expect(rows).toHaveLength(400);
    expect(rows.at(-1)).toBe("… 119602 lines more");
  });

  test("rows fit and hold nothing that a terminal acts on", () => {
    fc.assert(
      fc.property(nastyText(30), nastyText(30), someWidth, (before, after, columns) => {
        const lines = diffLines({ path: before, before, after: `${before}${after}` }, { width: columns, maxLines: 30 });
        expect(faultsIn(lines, columns)).toEqual([]);
        expect(lines.length).toBeLessThanOrEqual(30);
      }),
      { numRuns: 200 },
    );
  });

  test("the lines of both sides can be read off it", () => {
    const line = fc.constantFrom("a", "b", "c", "d e f", "d e g", "");
    const text = fc.array(line, { maxLength: 12 }).map((lines) => lines.map((one) => `${one}\n`).join(""));
    fc.assert(
      fc.property(text, text, (before, after) => {
        fc.pre(before !== after);
        const rows = plainRows(diffLines({ path: "p", before, after }, { width, context: 99 })).slice(1);
        const gutter = before === "" || after === "" ? /^ *\d+ / : /^(?:\d+| )+ /;
        const parts = rows.map((row) => row.replace(gutter, "").trimEnd());
        expect(rows.filter((row) => row.includes(" + ")).length).toBe(
          Number(/\+(\d+)/.exec(shown(before, after)[0] ?? "")?.[1]),
        );
        expect(parts.filter((row) => !row.startsWith("+")).length).toBe(before.split("\n").length - 1);
        expect(parts.filter((row) => !row.startsWith("-")).length).toBe(after.split("\n").length - 1);
      }),
      { numRuns: 100 },
    );
  });

  test.each(hugeTexts)("10 MB of %s give a bounded number of bounded rows", (_, huge) => {
    for (const [before, after] of [
      [undefined, huge],
      [`a${huge}`, `${huge}b`],
    ]) {
      const lines = diffLines({ path: "a", before, after }, { width, maxLines: 60 });
      expect(lines.length).toBeLessThanOrEqual(60);
      expect(faultsIn(lines, width)).toEqual([]);
    }
  });
});

describe("the change a call would make", () => {
  test("of Edit: no line numbers, since nobody looked where in the file it is", () => {
    const input = { file_path: "src/a.ts", old_string: "foo(1)", new_string: "foo(1, 2)", replace_all: true };
    expect(plainRows(editDiff("Edit", input, { width }) ?? [])).toEqual([
      "src/a.ts  +1 −1 · every occurrence",
      "- foo(1)",
      "+ foo(1, 2)",
    ]);
  });

  test("of Write: all of the new content", () => {
    const rows = plainRows(editDiff("Write", { file_path: "a", content: "x\ny" }, { width }) ?? []);
    expect(rows).toEqual(["a  +2 −0 · the whole file · no line break at the end", "1 + x", "2 + y"]);
  });

  test.each([
    ["Edit", { file_path: "a", old_string: 1, new_string: "b" }],
    ["Write", { file_path: "a" }],
    ["Edit", undefined],
    ["Bash", { file_path: "a", content: "b" }],
  ])("none for %s with %j", (tool, input) => {
    expect(editDiff(tool, input, { width })).toBeUndefined();
  });
});

test.each([2, 5, 10])("at %d columns a diff still fits", (columns) => {
  fc.assert(
    fc.property(nastyText(10), (text) => {
      expect(faultsIn(diffLines({ path: text, before: "a\n", after: text }, { width: columns }), columns)).toEqual([]);
    }),
    { numRuns: 30 },
  );
});
