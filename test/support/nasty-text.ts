import { visible } from "@sluice/core/runtime";
import fc from "fast-check";
import stringWidth from "string-width";
import type { Line } from "../../packages/view/src/text/line.ts";

/** What text is made of that wants to harm a screen, and what ordinary text is made of. */
const nasty: readonly string[] = [
  ...Array.from(
    "\u001b\u009b\u0000\b\r\n\t\v\f\u0007\u0085\u0090\u009c\u009d\u00ad\u202e\u2066\u200b\u200d\ufeff\u3164\u2800\u2028\u2029\u00a0\ue000\ufe0f\u0301\u20e3\u034f\u1100\u1161\u11a8\u0e33\u094d\u0915\u0937\u061c\u180e",
  ),
  "\ud83d",
  "\udc00",
  "\u{e0041}",
  "\u{1f3fd}",
  "\u{1f1e9}\u{1f1ea}",
  "👨‍👩‍👧",
  "❤️",
  "1️⃣",
  "\u001b[31m",
  "\u001b[8m",
  "\u001b[2J",
  "\u001b]8;;http://a\u0007",
  "\u001b]52;c;YQ==\u001b\\",
  "\u001bP1q",
  "\u001b\\",
];
const ordinary: readonly string[] = [
  ...Array.from("aZ09 .,()[]<>*_~`|#->+:!&;\"'\\/é日本語ᄀ한😀✔─"),
  "word ",
  "long-word-without-a-break",
  "- ",
  "\n\n",
  "```",
  "1. ",
  "http://a.b",
];

/** Texts of nasty and ordinary pieces. */
export function nastyText(maxLength = 60): fc.Arbitrary<string> {
  const piece = fc.oneof(fc.constantFrom(...nasty), fc.constantFrom(...ordinary));
  return fc.array(piece, { maxLength }).map((pieces) => pieces.join(""));
}

/** A width a terminal or a column in it may have. */
export const someWidth: fc.Arbitrary<number> = fc.integer({ min: 2, max: 90 });

/** Texts too large to be looked at more than once, one for each way to be costly. */
export const hugeTexts: readonly (readonly [name: string, text: string])[] = [
  ["letters", "x".repeat(10_000_000)],
  ["words", "word ".repeat(2_000_000)],
  ["lines", "a\n".repeat(5_000_000)],
  ["wide letters", "日".repeat(5_000_000)],
  ["escape sequences", "\u001b[31m".repeat(2_000_000)],
  ["an escape sequence without an end", `\u001b]52;c;${"A".repeat(10_000_000)}`],
  ["unseen characters", "\u200b".repeat(5_000_000)],
];

/** What of the rows could harm a screen: nothing when all is well. */
export function faultsIn(lines: readonly Line[], width: number): readonly string[] {
  return lines.flatMap((line, row) => {
    const text = plainOf(line);
    const columns = stringWidth(text, { countAnsiEscapeCodes: true });
    return [
      ...line
        .filter((span) => visible(span.text) !== span.text || span.text.includes("\n"))
        .map((span) => `row ${row} holds ${JSON.stringify(span.text)}`),
      ...(columns > width ? [`row ${row} takes ${columns} of ${width} columns: ${JSON.stringify(text)}`] : []),
    ];
  });
}

export function plainOf(line: Line): string {
  return line.map((span) => span.text).join("");
}

export function plainRows(lines: readonly Line[]): readonly string[] {
  return lines.map(plainOf);
}
