/** What a piece of text is meant as. A palette says what that looks like; nothing is told by colour alone. */
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
  /** Stands for a character that cannot be seen, such as `·U+200B`. */
  | "unseen"
  /** What the keys act on now. */
  | "selected";

/** Text that is safe to write: no control, bidi or zero-width character, no line break. */
export interface Span {
  readonly text: string;
  /** `plain` when omitted. */
  readonly style?: Style;
}

/** One row on the screen, or longer and to be wrapped or cut. */
export type Line = readonly Span[];
