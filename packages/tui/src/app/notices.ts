import { clean, headOf, type Line, type Span, type Style, wrap } from "@sluice/view/text";
import type { NoticeTone } from "../commands/command.ts";

const MARKS: Readonly<Record<NoticeTone, { readonly mark: string; readonly style: Style }>> = {
  plain: { mark: "· ", style: "dim" },
  good: { mark: "✔ ", style: "good" },
  bad: { mark: "✖ ", style: "bad" },
  notice: { mark: "! ", style: "notice" },
};

/** Rows of one notice: what a long error says is said, but not without end. */
const MOST_LINES = 30;
/** UTF-16 units of it that are looked at. */
const LONGEST = 20_000;

/** Something the app says, whatever it may quote, in rows of at most `width` columns. None but the first begins at the edge. */
export function noticeLines(text: string, tone: NoticeTone, width: number): readonly Line[] {
  const { mark, style } = MARKS[tone];
  return behind({ text: mark, style }, text, tone === "plain" ? "dim" : "plain", width);
}

/** What was typed, as it stays in the scrollback. */
export function promptLines(text: string, width: number): readonly Line[] {
  return behind({ text: "❯ ", style: "accent" }, text, "strong", width);
}

function behind(mark: Span, text: string, style: Style, width: number): readonly Line[] {
  const shown = headOf(text, LONGEST);
  const columns = Math.max(2, width - 2);
  const rows = clean(shown)
    .split("\n")
    .flatMap((line) => wrap([{ text: line, style }], columns));
  const lines = rows.slice(0, MOST_LINES).map((row, at): Line => [at === 0 ? mark : { text: "  " }, ...row]);
  const left = [
    ...(rows.length > lines.length ? [`${rows.length - lines.length} lines`] : []),
    ...(text.length > shown.length ? [`${text.length - shown.length} characters`] : []),
  ];
  return left.length === 0 ? lines : [...lines, [{ text: `  … ${left.join(" and ")} more`, style: "dim" }]];
}
