import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { editDiff } from "../../packages/view/src/text/diff.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { faultsIn, hugeTexts, nastyText, plainOf, plainRows, someWidth } from "../support/nasty-text.ts";

const width = 80;
const numbered = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join("");

/** The rows of an Edit. */
function edited(path: string, before: string, after: string, columns = width, maxLines?: number): readonly Line[] {
  const input = { file_path: path, old_string: before, new_string: after };
  return editDiff("Edit", input, { width: columns, ...(maxLines === undefined ? {} : { maxLines }) }) ?? [];
}

/** The rows of a Write. */
function written(path: string, content: string, columns = width, maxLines?: number): readonly Line[] {
  const input = { file_path: path, content };
  return editDiff("Write", input, { width: columns, ...(maxLines === undefined ? {} : { maxLines }) }) ?? [];
}

const shown = (before: string, after: string): readonly string[] => plainRows(edited("a.ts", before, after));

function inStyle(lines: readonly Line[], style: string): readonly string[] {
  return lines.flat().flatMap((span) => (span.style === style ? [span.text] : []));
}

describe("a diff", () => {
  test("has a head with counts, and context around each change", () => {
    const before = numbered(30);
    const after = before.replace("line 8\n", "").replace("line 20\n", "line twenty\nmore\n");
    expect(shown(before, after)).toEqual([
      "a.ts  +2 −2",
      "⋯ 4 unchanged lines",
      "  line 5",
      "  line 6",
      "  line 7",
      "- line 8",
      "  line 9",
      "  line 10",
      "  line 11",
      "⋯ 5 unchanged lines",
      "  line 17",
      "  line 18",
      "  line 19",
      "- line 20",
      "+ line twenty",
      "+ more",
      "  line 21",
      "  line 22",
      "  line 23",
      "⋯ 7 unchanged lines",
    ]);
  });

  test("a single unchanged line between two changes is shown, not counted", () => {
    const before = numbered(9);
    const after = before.replace("line 1\n", "one\n").replace("line 9\n", "nine\n");
    expect(shown(before, after)).toContain("  line 5");
    expect(shown(before, after).join("\n")).not.toContain("unchanged");
  });

  test("the words that changed are marked in both lines", () => {
    const lines = edited("a", "const one = load(path);\n", "const one = load(path, true);\n");
    expect(inStyle(lines, "addedWord").join("")).toBe(", true");
    expect(inStyle(lines, "removedWord")).toEqual([]);
    const renamed = edited("a", "let a = old_name;\n", "let a = new_name;\n");
    expect([inStyle(renamed, "removedWord"), inStyle(renamed, "addedWord")]).toEqual([["old_name"], ["new_name"]]);
  });

  test("words are compared with the line that is most alike, and not at all where little is", () => {
    const before = "return parse(text);\n";
    const after = "// a remark of its own\nif (empty) return;\nreturn parse(text, how);\n";
    expect(inStyle(edited("a", before, after), "addedWord").join("")).toBe(", how");
    const [one, other] = ["first = one two three four;\n", "second(five, six) = seven;\n"];
    expect(inStyle(edited("a", one, other), "addedWord")).toEqual([]);
  });

  test("changed blanks are seen", () => {
    expect(shown("\tif (a) b();\n", "  if (a) b();\n")).toEqual([
      "a.ts  +1 −1",
      "- →   if (a) b();",
      "+ ··if (a) b();",
    ]);
  });

  test("what cannot be seen is shown", () => {
    const lines = edited("a\u202e.ts", "ls\n", "ls\u200b\u001b[8m\n");
    expect(plainRows(lines)).toEqual(["a·U+202E.ts  +1 −1", "- ls", "+ ls·U+200B·U+001B[8m"]);
    expect(inStyle(lines, "unseen")).toEqual(["·U+202E", "·U+200B", "·U+001B"]);
  });

  test.each([
    ["an emptied text", "a\n", "", ["a.ts  +0 −1", "- a"]],
    ["nothing", "a\n", "a\n", ["a.ts  +0 −0 · no line changes"]],
    ["line ends of all lines", "a\nb\n", "a\r\nb\r\n", ["a.ts  +0 −0 · line endings become CR LF · no line changes"]],
    ["line ends without CR", "a\r\nb\r\n", "a\nc\n", ["a.ts  +1 −1 · line endings become LF", "  a", "- b", "+ c"]],
    ["a single other line end", "a\nb\n", "a\r\nb\n", ["a.ts  +1 −1", "- a", "+ a·U+000D", "  b"]],
  ])("%s", (_, before, after, expected) => {
    expect(shown(before, after)).toEqual(expected);
  });

  test("long lines continue below, and very long ones say how much is missing", () => {
    const rows = plainRows(written("a.ts", `${"word ".repeat(40)}\n`));
    expect(rows.length).toBe(4);
    expect(rows.slice(2).every((row) => row.startsWith("    "))).toBe(true);
    expect(plainRows(written("a.ts", "x".repeat(100_000))).join(" ")).toMatch(/… \d+ characters more/);
  });

  test("in a very long line the change is shown, wherever it is", () => {
    const before = `${"x".repeat(500_000)}old tail`;
    const lines = edited("a", before, before.replace("old", "new"));
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
      const lines = edited("a", `${long}${one}`, `${long}${other}`);
      expect([inStyle(lines, "removedWord"), inStyle(lines, "addedWord")]).toEqual([[one], [other]]);
    }
  });

  test("on a narrow screen lines have no numbers", () => {
    expect(plainRows(written("a", "b\nc\n", 24))).toEqual(["a  +2 −0 · the whole", "file", "1 + b", "2 + c"]);
    expect(plainRows(written("a", "b\nc\n", 23)).slice(2)).toEqual(["+ b", "+ c"]);
  });

  test("more lines than fit are shown as a number of lines", () => {
    const rows = plainRows(written("a", numbered(1_000), width, 5));
    expect(rows).toEqual([
      "a  +1000 −0 · the whole file",
      "   1 + line 1",
      "   2 + line 2",
      "   3 + line 3",
      "… 997 lines more",
    ]);
    const all = written("a", "a\nb\n", width, 3);
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
        const lines = edited(before, before, `${before}${after}`, columns, 30);
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
        const rows = shown(before, after).slice(1);
        const hidden = rows.reduce((sum, row) => sum + Number(/^⋯ (\d+)/.exec(row)?.[1] ?? 0), 0);
        const lines = rows.filter((row) => !row.startsWith("⋯"));
        expect(rows.filter((row) => row.startsWith("+ ")).length).toBe(
          Number(/\+(\d+)/.exec(shown(before, after)[0] ?? "")?.[1]),
        );
        expect(lines.filter((row) => !row.startsWith("+")).length + hidden).toBe(before.split("\n").length - 1);
        expect(lines.filter((row) => !row.startsWith("-")).length + hidden).toBe(after.split("\n").length - 1);
      }),
      { numRuns: 100 },
    );
  });

  test.each(hugeTexts)("10 MB of %s give a bounded number of bounded rows", (_, huge) => {
    for (const lines of [written("a", huge, width, 60), edited("a", `a${huge}`, `${huge}b`, width, 60)]) {
      expect(lines.length).toBeLessThanOrEqual(60);
      expect(faultsIn(lines, width)).toEqual([]);
    }
  });
});

describe("the change a call would make", () => {
  test("of Edit: no line numbers, since no one looked where in the file it is", () => {
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
      expect(faultsIn(edited(text, "a\n", text, columns), columns)).toEqual([]);
    }),
    { numRuns: 30 },
  );
});
