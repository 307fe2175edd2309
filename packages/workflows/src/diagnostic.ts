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

/** A place in the text of a file. */
export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Characters of the line that are meant, from 1. */
  readonly length: number;
}

/** The steps from the root of a document to a part of it. */
export type DocumentPath = readonly (string | number)[];

/** A path as people read it, such as `states.testing.on.DEPLOY[0].guard`. */
export function pathWords(path: DocumentPath): string {
  let words = "";
  for (const step of path) {
    if (typeof step === "number") words += `[${step}]`;
    else if (!/^[\w$-]+$/u.test(step)) words += `[${JSON.stringify(step)}]`;
    else words += words === "" ? step : `.${step}`;
  }
  return words;
}
