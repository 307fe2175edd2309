/** The meaning of a span. A palette maps it to a look; no meaning depends on colour alone. */
export type Style =
  | "plain"
  | "dim"
  | "strong"
  | "emphasis"
  | "heading"
  | "code"
  | "link"
  | "accent"
  | "good"
  | "bad"
  | "notice"
  | "added"
  | "removed"
  | "addedWord"
  | "removedWord"
  /** The name of an invisible character, such as `·U+200B`. */
  | "unseen"
  /** The item that keys act on. */
  | "selected";

/** Text that is safe to write: no control, bidi or zero-width character, no line break. */
export interface Span {
  readonly text: string;
  /** `plain` when omitted. */
  readonly style?: Style;
}

/** A row of the screen, or a longer line to be wrapped or cut. */
export type Line = readonly Span[];
