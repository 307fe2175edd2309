import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Line } from "../../packages/view/src/text/line.ts";
import { createMarkdownStream, markdown } from "../../packages/view/src/text/markdown/markdown.ts";
import { faultsIn, hugeTexts, nastyText, plainRows, someWidth } from "../support/nasty-text.ts";

const rows = (text: string, width = 40): readonly string[] => plainRows(markdown(text, width));

/** The text in a style, in one string. */
function styled(lines: readonly Line[], style: string): string {
  return lines
    .flat()
    .filter((span) => span.style === style)
    .map((span) => span.text)
    .join("|");
}

describe("markdown", () => {
  test.each([
    ["headings without their signs", "# One\ntext\n\n### Two", ["One", "", "text", "", "Two"]],
    ["paragraphs wrapped, written line breaks kept", "one two three four\nfive", ["one two three", "four", "five"]],
    ["nested lists", "- a\n  - b\n    - c\n- d", ["• a", "  ◦ b", "    ▪ c", "• d"]],
    ["ordered lists count on from their start", "9. a\n10. b", [" 9. a", "10. b"]],
    ["tasks", "- [x] a\n- [ ] b", ["• [x] a", "• [ ] b"]],
    ["loose lists", "- a\n\n- b", ["• a", "", "• b"]],
    ["paragraphs of an item", "- a\n\n  b", ["• a", "", "  b"]],
    ["quotes", "> a\n>\n> > b", ["│ a", "│ ", "│ │ b"]],
    ["code with its language", "```ts\nlet a;\n\n  b\n```", ["┌ ts", "│ let a;", "│ ", "│   b"]],
    ["code in tildes, with backticks in it", "~~~\n```\n~~~", ["│ ```"]],
    ["a fence closes with as many signs as it opened", "````\n```\n````\nx", ["│ ```", "", "x"]],
    ["backticks in a line that only looks like a fence", "```a``` b", ["a b"]],
    ["code that never ends", "a\n```\nb\n\nc", ["a", "", "│ b", "│ ", "│ c"]],
    ["code in a list", "- a\n  ```js\n  b\n  ```", ["• a", "  ┌ js", "  │ b"]],
    ["indented code", "a\n\n    b", ["a", "", "│ b"]],
    ["HTML as text", "<b>x</b>\n\n<script>\ny\n</script>", ["<b>x</b>", "", "<script>", "y", "</script>"]],
    ["entities that everybody writes", "a &amp; b &lt;c&gt; `&amp;`", ["a & b <c> &amp;"]],
    ["a line break in HTML", "a<br>b", ["a", "b"]],
    ["escapes", "\\*a\\*", ["*a*"]],
    ["rules", "---", ["─".repeat(16)]],
    ["definitions of links are not hidden", "[a]: http://b.c", ["[a]: http://b.c"]],
  ])("%s", (_, text, expected) => {
    expect(rows(text, 16)).toEqual(expected);
  });

  test("words carry what they are meant as", () => {
    const lines = markdown("# H\n\n*em* **strong *both*** `code` ~~gone~~", 80);
    expect([
      styled(lines, "heading"),
      styled(lines, "emphasis"),
      styled(lines, "strong"),
      styled(lines, "code"),
    ]).toEqual(["H", "em", "strong |both", "code"]);
    expect(styled(lines, "dim")).toBe("~~|gone|~~");
  });

  test.each([
    ["[words](http://real.example/path)", "words (http://real.example/path)"],
    ["[http://good.example](http://bad.example)", "http://good.example (http://bad.example)"],
    ["<http://a.example>", "http://a.example"],
    ["http://a.example", "http://a.example"],
    ["www.a.example", "www.a.example"],
    ["<me@a.example>", "me@a.example"],
    ["![alt](http://i.example/x.png)", "[image: alt] (http://i.example/x.png)"],
    ["[a][missing]", "[a][missing]"],
  ])("where %s leads is shown", (text, expected) => {
    expect(rows(text, 80)).toEqual([expected]);
  });

  test("a table fits its columns, wide cells continue below", () => {
    const table = "| Name | What it is |\n|:--|--:|\n| a | one two three |\n| `bb` | x \\| y |";
    expect(rows(table, 40)).toEqual([
      "Name │    What it is",
      "─────┼──────────────",
      "a    │ one two three",
      "bb   │         x | y",
    ]);
    expect(rows(table, 16)).toEqual([
      "Name │   What it",
      "     │        is",
      "─────┼──────────",
      "a    │   one two",
      "     │     three",
      "bb   │     x | y",
    ]);
    expect(rows("|a|b|c|d|\n|-|-|-|-|\n|1|2|3|4|", 10)).toEqual(["a │ b │ c", "│ d", "1 │ 2 │ 3", "│ 4"]);
  });

  test("a column that is centred has its spaces on both sides", () => {
    expect(rows("| Name | Left |\n|:-:|:--|\n| a | b |", 40)).toEqual(["Name │ Left", "─────┼─────", " a   │ b   "]);
  });

  test("a block without rows has no blank line either, at the beginning or between others", () => {
    expect(rows("a\n\n>\n\nb")).toEqual(["a", "", "b"]);
    expect(rows(">\n\nb")).toEqual(["b"]);
    const stream = createMarkdownStream(40);
    expect(plainRows([...stream.push(">\n\nb\n\n>\n\n"), ...stream.push("c"), ...stream.rest()])).toEqual([
      "b",
      "",
      "c",
    ]);
  });

  test("long code continues behind another bar", () => {
    expect(rows("```\naaaa bbbb cccc\n```", 12)).toEqual(["│ aaaa bbbb", "┊ cccc"]);
  });

  test("a block that is too large to parse is shown as it is, and what follows is parsed again", () => {
    const large = Array.from({ length: 400 }, () => "*a*").join("\n");
    const lines = plainRows(markdown(`*b*\n\n${large}\n\n*c*`, 40));
    expect([lines[0], lines[2], lines.at(-1)]).toEqual(["b", "*a*", "c"]);
    expect(lines).toHaveLength(404);
    expect(rows(`${large}\n*b*`).slice(-2)).toEqual(["*a*", "*b*"]);
  });

  test("a long list stays a list", () => {
    const list = Array.from({ length: 1_000 }, (_, at) => `${at + 1}. item *${at}*`).join("\n");
    const lines = rows(list);
    expect(lines).toHaveLength(1_000);
    expect(lines.every((line, at) => line.trimStart() === `${at + 1}. item ${at}`)).toBe(true);
  });

  test("text that is cut says how many lines are missing", () => {
    expect(plainRows(markdown("a\n\nb\n\nc\n\nd", 40, 4))).toEqual(["a", "", "b", "… 3 lines more"]);
    expect(markdown("a\n".repeat(5_000_000), 40, 10)).toHaveLength(10);
  });

  test("rows fit and hold nothing that a terminal acts on", () => {
    fc.assert(
      fc.property(nastyText(), someWidth, (text, width) => {
        expect(faultsIn(markdown(text, width), width)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test.each(hugeTexts)("10 MB of %s give a bounded number of bounded rows", (_, huge) => {
    const lines = markdown(huge, 80, 100);
    expect(lines.length).toBeLessThanOrEqual(100);
    expect(faultsIn(lines, 80)).toEqual([]);
  });
});

// Each of these took the parser seconds to minutes, or its stack; here they are to end at all.
describe("text made to hang a parser", () => {
  const units = [
    "[",
    "![",
    "](",
    "[a](",
    "*",
    "*a_",
    "a**b_",
    "*a ",
    "_a ",
    "~a~~",
    "`",
    "<",
    "<a b='",
    "a@",
    "www.(",
    "&a;",
    "|",
    ">",
    "> ",
    "- ",
    "1. ",
    "\n- ",
    "\n> ",
    "\n1. ***",
    "\n|",
    "\\",
    "\t",
    "😀*",
    "a_b",
  ];
  test.each(units)("%j many times", (unit) => {
    for (const text of [unit.repeat(15_000 / unit.length), `a${unit.repeat(99)}\n\n`.repeat(20)]) {
      expect(faultsIn(markdown(text, 80), 80)).toEqual([]);
    }
  });

  test("lists in lists in lists", () => {
    const deep = Array.from({ length: 150 }, (_, at) => `${"  ".repeat(at)}- a`).join("\n");
    expect(faultsIn(markdown(deep, 40), 40)).toEqual([]);
    expect(rows(deep, 400)[0]).toBe("- a");
    expect(rows("> ".repeat(30), 400)).toEqual(["> ".repeat(30).trimEnd()]);
  });
});

describe("markdown that is still written", () => {
  const block = fc.oneof(
    fc.constantFrom(
      "# Title",
      "- a\n- b\n  - c",
      "1. x\n2. y\n\n   more",
      "> quote\n> on",
      "```ts\nlet a = 1;\n\nlet b;\n```",
      "|a|b|\n|-|-|\n|1|2|",
      "---",
      "    code",
      "plain *em* `c`\nsecond line",
      "```\nnot closed",
      "- a\n\n\n- b",
    ),
    nastyText(12),
  );
  const parts = fc.tuple(fc.array(block, { maxLength: 8 }), fc.constantFrom("\n", "\n\n", "\r\n\r\n"));

  test("what is final and what is not make the whole, however the text comes", () => {
    fc.assert(
      fc.property(
        parts,
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        someWidth,
        ([blocks, between], sizes, width) => {
          const text = blocks.join(between);
          const stream = createMarkdownStream(width);
          const final: Line[] = [];
          for (let at = 0; at < text.length; ) {
            const size = sizes.next().value ?? 1;
            final.push(...stream.push(text.slice(at, at + size)));
            at += size;
            const soFar = [...final, ...stream.rest(10_000)];
            expect(plainRows(soFar)).toEqual(plainRows(markdown(text.slice(0, at), width, 10_000)));
          }
        },
      ),
      { numRuns: 120 },
    );
  });

  test("a block is final at its end, code at the end of each line", () => {
    const stream = createMarkdownStream(40);
    expect(plainRows(stream.push("one *tw"))).toEqual([]);
    expect(plainRows(stream.rest())).toEqual(["one *tw"]);
    expect(plainRows(stream.push("o*\n"))).toEqual([]);
    expect(plainRows(stream.push("\n```ts\nlet a"))).toEqual(["one two", "", "┌ ts"]);
    expect(plainRows(stream.push(";\n\nlet"))).toEqual(["│ let a;", "│ "]);
    expect(plainRows(stream.rest())).toEqual(["│ let"]);
    expect(plainRows(stream.push(" b;\n```\n- x\n"))).toEqual(["│ let b;"]);
    expect(plainRows(stream.rest())).toEqual(["", "• x"]);
    expect(plainRows(stream.push("\n"))).toEqual([]);
    expect(plainRows(stream.push("end"))).toEqual([]);
    expect(plainRows(stream.rest())).toEqual(["", "• x", "", "end"]);
    expect(plainRows(stream.push("\n"))).toEqual(["", "• x"]);
    expect(plainRows(stream.rest())).toEqual(["", "end"]);
  });

  test("blocks too large to parse come the same way", () => {
    const text = `${"*a*\n".repeat(400)}\n${"- x\n".repeat(300)}`;
    const stream = createMarkdownStream(40);
    const final: Line[] = [];
    for (let at = 0; at < text.length; at += 97) {
      final.push(...stream.push(text.slice(at, at + 97)));
      const soFar = plainRows([...final, ...stream.rest(10_000)]);
      expect(soFar).toEqual(plainRows(markdown(text.slice(0, at + 97), 40, 10_000)));
    }
  });

  test("of what is not final the last rows are shown", () => {
    const stream = createMarkdownStream(40);
    stream.push(Array.from({ length: 30 }, (_, at) => `line ${at}`).join("\n"));
    expect(plainRows(stream.rest(3))).toEqual(["… 28 lines above", "line 28", "line 29"]);
  });

  test("an escape sequence that comes in two pieces is none", () => {
    const stream = createMarkdownStream(40);
    stream.push("a\u001b");
    stream.push("[31mb");
    expect(plainRows(stream.rest())).toEqual(["ab"]);
  });

  test("a line without an end becomes rows while it comes, and little of it is kept back", () => {
    const stream = createMarkdownStream(80);
    let final = 0;
    for (let at = 0; at < 2_000; at += 1) final += stream.push("x".repeat(500)).length;
    expect(final).toBeGreaterThan(1_000_000 / 80 - 500);
    expect(stream.rest(1_000).length).toBeLessThan(400);
  });
});
