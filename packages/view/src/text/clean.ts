import { replaceUnseen } from "@sluice/core/runtime";
import { moreCharacters } from "./fold.ts";
import type { Line, Span, Style } from "./line.ts";

/** Marks kept on one letter. Real text needs no more, and more would cover the rows around it. */
const MOST_MARKS = 3;
const TAB_COLUMNS = 4;
/** UTF-16 units of one text that `revealed` shows. */
const MOST_REVEALED = 20_000;

/** The edge of a card and characters that look like it, so that no untrusted row looks like a card. */
const CARD_EDGE = /[\u2589-\u258e]/g;
const THIN_BAR = "\u258f";

const UNSAFE = /[^\x20-\x7e\n]/;
const ESC = "\u001b";
/** OSC, DCS, SOS, PM and APC strings up to their terminator. */
const ESCAPED_STRING = `(?:${ESC}[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])\\P{Cc}{0,4096}(?:\\u0007|${ESC}\\\\|\\u009c)`;
const CONTROL_SEQUENCE = `(?:${ESC}\\[|\\u009b)[0-?]{0,256}[ -/]{0,256}[@-~]`;
const SHORT_SEQUENCE = `${ESC}[ -/]{0,16}[0-~]`;
/** Of an unterminated string only the introducer matches. Repetitions are bounded to bound the engine's stack. */
const ESCAPE = new RegExp(`${ESCAPED_STRING}|${CONTROL_SEQUENCE}|${SHORT_SEQUENCE}`, "gu");
const LINE_BREAK = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;
/** Combining marks, and emoji modifiers, which some terminals draw beside the emoji. */
const MARK = /\p{M}|\p{Emoji_Modifier}/gu;
const MODIFIER = /^\p{Emoji_Modifier}$/u;

/**
 * Untrusted text that is safe to write, with its lines. Escape sequences and invisible characters are dropped, tabs and other
 * kinds of spaces become spaces, line breaks of all kinds `\n`, characters without a shape (private use, lone surrogates)
 * `\ufffd`, and the edge of cards a thin bar. For text that a person approves, use `revealed`.
 */
export function clean(text: string): string {
  if (!UNSAFE.test(text)) return text;
  const broken = text.replaceAll(ESCAPE, "").replaceAll(LINE_BREAK, "\n");
  return withFewMarks(replaceUnseen(withoutTabs(broken), standIn)).replaceAll(CARD_EDGE, THIN_BAR);
}

/** The same on one line, with `⏎` for line breaks. */
export function cleanInline(text: string): string {
  return clean(text).replaceAll("\n", "⏎");
}

/** A span of untrusted text, on one line. */
export function spanOf(text: string, style?: Style): Span {
  return style === undefined ? { text: cleanInline(text) } : { text: cleanInline(text), style };
}

/**
 * Text on one line with each invisible character as a span such as `·U+200B`, `×n` if repeated; a line break is `⏎`, a tab `→`.
 * Beyond `most` UTF-16 units only the number of characters is shown.
 */
export function revealed(text: string, style: Style = "plain", most = MOST_REVEALED): Line {
  const shown = headOf(text, most);
  const spans: Span[] = [];
  const runs = unseenIn(shown);
  let end = 0;
  for (const run of runs) {
    if (run.at > end) spans.push({ text: shown.slice(end, run.at), style });
    spans.push({ text: nameOf(run), style: "unseen" });
    end = run.at + run.character.length * run.times;
  }
  if (end < shown.length) spans.push({ text: shown.slice(end), style });
  return [...spans, ...moreCharacters(text.length - shown.length)];
}

/** The beginning of a text in at most that many UTF-16 units, never half of a surrogate pair. */
export function headOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** The end of a text in at most that many UTF-16 units, never half of a surrogate pair. */
export function tailOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const at = text.length - most;
  const first = text.charCodeAt(at);
  return text.slice(first >= 0xdc00 && first <= 0xdfff ? at + 1 : at);
}

/** Tabs as spaces up to the next column that is a multiple of four. */
export function withoutTabs(text: string): string {
  if (!text.includes("\t")) return text;
  let from = 0;
  let column = 0;
  return text.replaceAll(/[\t\n]/g, (character, at: number) => {
    column += at - from;
    from = at + 1;
    if (character === "\n") {
      column = 0;
      return character;
    }
    const spaces = TAB_COLUMNS - (column % TAB_COLUMNS);
    column += spaces;
    return " ".repeat(spaces);
  });
}

function standIn(character: string): string {
  if (/[\p{Zs}\u2800]/u.test(character)) return " ";
  return /[\p{Co}\p{Cs}]/u.test(character) ? "\ufffd" : "";
}

function withFewMarks(text: string): string {
  const fits = fewMarks(text, () => false);
  return text.replaceAll(MARK, (mark, at: number) => (fits(mark, at) ? mark : ""));
}

/**
 * Returns a function that decides which marks to keep: the first few on each visible letter. Its calls must follow the order of
 * the text. `hidden` decides whether the character that ends at an offset is replaced.
 */
function fewMarks(text: string, hidden: (end: number) => boolean): (mark: string, at: number) => boolean {
  let end = -1;
  let count = 0;
  return (mark, at) => {
    if (at !== end) {
      const before = text.charCodeAt(at - 1);
      count = at === 0 || before <= 0x20 || hidden(at) ? MOST_MARKS : 0;
    }
    end = at + mark.length;
    if (MODIFIER.test(mark)) return false;
    count += 1;
    return count <= MOST_MARKS;
  };
}

interface UnseenRun {
  readonly at: number;
  readonly character: string;
  times: number;
}

function unseenIn(text: string): readonly UnseenRun[] {
  const found: { at: number; character: string }[] = [];
  const ends = new Set<number>();
  const note = (character: string, at: number): string => {
    found.push({ at, character });
    ends.add(at + character.length);
    return "";
  };
  replaceUnseen(text, note);
  for (const { index } of text.matchAll(/\n/g)) note("\n", index);
  const fits = fewMarks(text, (end) => ends.has(end));
  for (const { 0: mark, index } of text.matchAll(MARK)) {
    // Some marks, such as variation selectors, are invisible and found already.
    if (!fits(mark, index) && !ends.has(index + mark.length)) note(mark, index);
  }
  found.sort((a, b) => a.at - b.at);
  const runs: UnseenRun[] = [];
  for (const { at, character } of found) {
    const last = runs.at(-1);
    if (last?.character === character && last.at + last.times * character.length === at) last.times += 1;
    else runs.push({ at, character, times: 1 });
  }
  return runs;
}

function nameOf({ character, times }: UnseenRun): string {
  const often = times === 1 ? "" : `×${times}`;
  if (character === "\n") return `⏎${often}`;
  if (character === "\t") return "→".repeat(Math.min(times, 40));
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `·U+${code}${often}`;
}
