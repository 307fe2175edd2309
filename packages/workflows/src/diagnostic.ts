/** A mistake or a doubtful part of a workflow file. */
export interface Diagnostic {
  /** `error`: the file cannot run. `warning`: it runs, but perhaps not as meant. */
  readonly severity: "error" | "warning";
  /** The stable id of the rule, such as `unknown-key`. */
  readonly rule: string;
  /** One sentence: what is wrong. */
  readonly message: string;
  /** How to fix it. */
  readonly suggestion?: string;
  /** Where in the document, such as `states.testing.on.DEPLOY.guard`; empty for the file as a whole. */
  readonly path: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Characters of the line that it is about, for the caret. */
  readonly length: number;
}
