// The syntax tree of a line of the plain command language.

/** A part of a word. `quoted`: its characters have no special meaning. */
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
  /** `withErrors`: standard error goes into the pipe too (`|&`). */
  readonly commands: readonly { readonly command: Command; readonly withErrors: boolean }[];
}
/** Pipelines joined by `&&` and `||`; the first has no operator. */
export type AndOr = readonly { readonly operator?: "&&" | "||"; readonly pipeline: Pipeline }[];
/** And-or lists separated by `;` or a newline. */
export type List = readonly AndOr[];

/** Thrown for a line outside the plain command language. The message completes "the line contains …". */
export class OutsideLanguage extends Error {
  override readonly name = "OutsideLanguage";
}

export function outside(what: string): OutsideLanguage {
  return new OutsideLanguage(what);
}
