import type { NoticeTone } from "./commands/command.ts";
import { clean } from "./text/clean.ts";
import type { Line, Style } from "./text/line.ts";

const MARKS: Readonly<Record<NoticeTone, { readonly mark: string; readonly style: Style }>> = {
  plain: { mark: "· ", style: "dim" },
  good: { mark: "✔ ", style: "good" },
  bad: { mark: "✖ ", style: "bad" },
  notice: { mark: "! ", style: "notice" },
};

/** Rows of one notice: what a long error says is said whole, but not without end. */
const MOST_LINES = 30;

/** Something the app says, whatever it may quote. */
export function noticeLines(text: string, tone: NoticeTone): readonly Line[] {
  const { mark, style } = MARKS[tone];
  return clean(text)
    .split("\n")
    .slice(0, MOST_LINES)
    .map(
      (line, at): Line => [
        { text: at === 0 ? mark : "  ", style },
        { text: line, style: tone === "plain" ? "dim" : "plain" },
      ],
    );
}

/** What was typed, as it stays in the scrollback. */
export function promptLines(text: string): readonly Line[] {
  const rows = clean(text).split("\n");
  const shown = rows.slice(0, MOST_LINES).map(
    (row, at): Line => [
      { text: at === 0 ? "❯ " : "  ", style: "accent" },
      { text: row, style: "strong" },
    ],
  );
  const left = rows.length - shown.length;
  return left > 0 ? [...shown, [{ text: `  … ${left} lines more`, style: "dim" }]] : shown;
}
