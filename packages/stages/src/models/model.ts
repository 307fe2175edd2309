import type { LanguageModelV4 } from "@ai-sdk/provider";

/** Which model call this is, as the record of the run counts it. */
export interface TurnPosition {
  /** The state's id. */
  readonly stage: string;
  /** Turns of this stage before this one, over all its attempts and visits in the run: the first is 0. */
  readonly turn: number;
  /** Tries of this turn, this one included: the first is 1. */
  readonly attempt: number;
  /** The run's id, where there is one: a recording leaves it out of what it compares. */
  readonly runId?: string;
}

/** A model that is ready to be called. */
export interface ResolvedModel {
  /** What records and people call it: `anthropic/claude-…`. */
  readonly id: string;
  /** The id whose prices and windows hold for it, where that is another: a replay counts as the model that was recorded. */
  readonly pricedAs?: string;
  /** Values this instance sends that must never be shown, recorded or told to a model. */
  readonly secrets: readonly string[];
  /** The provider's model for one attempt of one turn: the same object every time, except where a script is played. */
  at(position: TurnPosition): LanguageModelV4;
}
