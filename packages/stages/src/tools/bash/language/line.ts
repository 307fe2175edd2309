// The tree of a line of the plain command language.

/** One stretch of a word. `quoted`: none of its characters means anything but itself. */
export type WordPart =
  | { readonly kind: "text"; readonly text: string; readonly quoted: boolean }
  | { readonly kind: "variable"; readonly name: string; readonly quoted: boolean; readonly braced: boolean };
export type Word = readonly WordPart[];

export interface Redirect {
  /** `both` is standard output and standard error. */
  readonly from: 0 | 1 | 2 | "both";
  readonly to:
    | { readonly kind: "descriptor"; readonly descriptor: 1 | 2 }
    | { readonly kind: "file"; readonly word: Word; readonly how: "read" | "write" | "append" };
}
export interface Assignment {
  readonly name: string;
  readonly value: Word;
}
export interface SimpleCommand {
  readonly kind: "simple";
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}
export interface Subshell {
  readonly kind: "subshell";
  readonly list: List;
  readonly redirects: readonly Redirect[];
}
export type Command = SimpleCommand | Subshell;
export interface Pipeline {
  readonly negated: boolean;
  readonly timed: boolean;
  /** `withErrors`: its standard error goes into the pipe behind it, too (`|&`). */
  readonly commands: readonly { readonly command: Command; readonly withErrors: boolean }[];
}
/** Pipelines joined by `&&` and `||`; the first has no operator in front. */
export type AndOr = readonly { readonly operator?: "&&" | "||"; readonly pipeline: Pipeline }[];
/** And-or lists apart by `;` or a newline. */
export type List = readonly AndOr[];

/** Thrown by whatever reads a line that is not in the plain command language. The message completes "a line with <message>". */
export class OutsideLanguage extends Error {
  override readonly name = "OutsideLanguage";
}

export function outside(what: string): OutsideLanguage {
  return new OutsideLanguage(what);
}
