import { headOf, tailOf } from "../../text/clean.ts";
import { lineEnds } from "../../text/fold.ts";
import { count } from "../../words/words.ts";
import { exact, html, joined, type Markup, NOTHING, references } from "./markup.ts";

/** Colour sequences of a program's output are dropped; every other escape sequence is shown. */
const ESC = "\u001b";
const COLOUR = `${ESC}\\[[\\d;:]{0,64}m`;
const COLOURS = new RegExp(COLOUR, "g");
const EMOJI = /(\p{RGI_Emoji})/v;
/** UTF-16 units of one line. */
const LONGEST_LINE = 4_000;
/** Lines of one text; of a longer one, the first and the last. */
const MOST_LINES = 400;
const HEAD_LINES = 280;
const TAIL_LINES = 119;

/** Lines of text that was approved or executed: every invisible character is marked. */
export function exactLines(text: string): Markup {
  return linesOf(text, exact);
}

/** Lines of output: colours are dropped, emoji stay whole, other invisible characters are marked. */
export function printedLines(text: string): Markup {
  return linesOf(text.replaceAll(COLOURS, ""), printedLine);
}

/** Preformatted text; of a long one, the beginning and the end. */
export function textBlock(text: string, most: number, lines: (text: string) => Markup = printedLines): Markup {
  return html`<pre tabindex="0" dir="auto">${bothEnds(text, most, lines)}</pre>`;
}

/** A command line, whose characters stand in the order in which they are read by a shell; of a long one, the beginning and the end. */
export function commandBlock(text: string, most: number): Markup {
  return html`<pre tabindex="0">${bothEnds(text, most, exactLines)}</pre>`;
}

function bothEnds(text: string, most: number, lines: (text: string) => Markup): Markup {
  const { head, tail, left } = cutMiddle(text.replaceAll("\r\n", "\n").replace(/\n$/, ""), most);
  const rest = left === "" ? NOTHING : html`${BREAK}${cutNote(left)}${BREAK}${lines(tail)}`;
  return html`${lines(head)}${rest}`;
}

export function cutNote(what: string): Markup {
  return html`<i class="cut">… ${what} left out …</i>`;
}

/** The beginning of a text on one line, with a note if there is more. */
export function shortText(text: string, most: number): Markup {
  return beginning(text, most, exact);
}

function beginning(text: string, most: number, show: (text: string) => Markup): Markup {
  const head = headOf(text, most);
  const left = text.length - head.length;
  return left === 0 ? show(head) : html`${show(head)} ${cutNote(count(left, "character"))}`;
}

const BREAK = html`
`;
const TAB = html`	`;

function printedLine(line: string): Markup {
  if (!EMOJI.test(line)) return exact(line);
  // Every second piece is an emoji, with the characters that join its parts.
  return joined(line.split(EMOJI).map((piece, at) => (at % 2 === 1 ? references(piece) : exact(piece))));
}

function linesOf(text: string, line: (text: string) => Markup): Markup {
  const cells = (shown: string): Markup => joined(shown.split("\t").map(line), TAB);
  const lines = text.split("\n").map((one) => beginning(one, LONGEST_LINE, cells));
  return joined(lines, BREAK);
}

/** The beginning and the end of a text that is too long, and the size of the rest. */
function cutMiddle(
  text: string,
  most: number,
): { readonly head: string; readonly tail: string; readonly left: string } {
  if (text.length <= most && lineEnds(text) < MOST_LINES) return { head: text, tail: "", left: "" };
  const head = headOf(text, Math.ceil(most * 0.7))
    .split("\n", HEAD_LINES)
    .join("\n");
  const ends = tailOf(text, Math.floor(most * 0.3)).split("\n");
  const tail = ends.slice(-TAIL_LINES).join("\n");
  const middle = text.slice(head.length, text.length - tail.length);
  const lines = lineEnds(middle);
  return { head, tail, left: lines > 1 ? count(lines - 1, "line") : count(middle.length, "character") };
}
