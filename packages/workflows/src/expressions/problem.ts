/** A mistake in an expression. */
export interface CelProblem {
  /** The stable id of the rule. */
  readonly rule: "expression-syntax" | "expression-limit" | "expression-name" | "expression-type" | "expression-banned";
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** Where in the expression, in UTF-16 code units from 0. */
  readonly offset: number;
  readonly length: number;
}
