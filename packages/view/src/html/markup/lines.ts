import type { Line, Style } from "../../text/line.ts";
import { html, joined, type Markup } from "./markup.ts";

const CLASSES: Partial<Readonly<Record<Style, string>>> = {
  dim: "faint",
  good: "good",
  bad: "bad",
  notice: "notice",
  unseen: "unseen",
};

/** The class that has the meaning of a style; nothing for those that need none. */
export function classOf(style: Style): string {
  return CLASSES[style] ?? "";
}

/** A row of the terminal's as HTML, its meanings as classes. */
export function lineMarkup(line: Line): Markup {
  return joined(
    line.map(({ text, style = "plain" }) => {
      const name = classOf(style);
      return name === "" ? html`${text}` : html`<span class="${name}">${text}</span>`;
    }),
  );
}
