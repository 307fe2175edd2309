import { replaceUnseen } from "@sluice/core";
import type { Line, Style } from "./line.ts";

/** What each style looks like: parameters of SGR, empty for text as it is. */
export type Palette = Readonly<Record<Style, string>>;

const ORDINARY = /^[\x20-\x7e]*$/;

/**
 * Of the 16 colours those that can be read on dark and on light ground, named by number, so that a terminal's theme decides;
 * no ground but for what is selected. Without colour only bold, underlined and turned round.
 */
export function createPalette({ colour }: { readonly colour: boolean }): Palette {
  const tinted = (withColour: string, without: string): string => (colour ? withColour : without);
  return {
    plain: "",
    dim: tinted("2", ""),
    strong: "1",
    emphasis: tinted("3", "4"),
    heading: tinted("1;35", "1"),
    code: tinted("36", ""),
    link: tinted("4;36", "4"),
    accent: tinted("36", "1"),
    good: tinted("32", ""),
    bad: tinted("31", "1"),
    notice: tinted("35", "1"),
    added: tinted("32", ""),
    removed: tinted("31", ""),
    addedWord: tinted("1;4;32", "1;4"),
    removedWord: tinted("1;4;31", "1;4"),
    unseen: tinted("1;4;35", "1;4"),
    selected: "7",
  };
}

/** A line as text with SGR, each piece reset at its end. The last door before the terminal: what a span must not hold becomes `\ufffd`. */
export function paint(line: Line, palette: Palette): string {
  let painted = "";
  for (const { text, style = "plain" } of line) {
    if (text === "") continue;
    const safe = ORDINARY.test(text) ? text : replaceUnseen(text, () => "\ufffd").replaceAll("\n", "\ufffd");
    const look = palette[style];
    painted += look === "" ? safe : `\u001b[${look}m${safe}\u001b[0m`;
  }
  return painted;
}
