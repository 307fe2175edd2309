import { span } from "@sluice/view";
import { clean, headOf, type Line, type Style, wrap } from "@sluice/view/text";

export interface TextBlockOptions {
  /** Columns, two of which are left for a margin. */
  readonly width: number;
  readonly style?: Style;
  /** UTF-16 units that are laid out. */
  readonly most: number;
  /** Where to see the rest. */
  readonly rest?: string;
}

/** The rows of an untrusted text; of a very long one the beginning, and how much is missing. */
export function textBlock(text: string, { width, style = "plain", most, rest }: TextBlockOptions): readonly Line[] {
  const shown = headOf(text, most);
  const rows = clean(shown)
    .split("\n")
    .flatMap((line) => wrap([span(line, style)], Math.max(2, width - 2)));
  const hidden = text.length - shown.length;
  const where = rest === undefined ? "" : ` (${rest})`;
  return hidden === 0 ? rows : [...rows, [span(`… ${hidden} characters more${where}`, "dim")]];
}
