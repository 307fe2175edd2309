import { replaceUnseen } from "@sluice/core/runtime";
import type { Line, Style } from "./line.ts";

/** SGR parameters of each style; empty for plain text. */
export type Palette = Readonly<Record<Style, string>>;

const ORDINARY = /^[\x20-\x7e]*$/;

/**
 * Uses those of the 16 named colours that are readable on dark and light backgrounds, and no background except for the
 * selection. Without colour: bold, underline and inverse.
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

/** A line as text with SGR. The last check before the terminal: characters that a span must not contain become `\ufffd`. */
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
