/** US dollars for a million tokens. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  /** Input that was read from the provider's cache; as `input` when omitted. */
  readonly cacheRead?: number;
  /** Input that was written to it; as `input` when omitted. */
  readonly cacheWrite?: number;
}
export interface ModelPrice extends TokenPrices {
  /** What a call costs, all of it, whose prompt has more than `over` tokens. */
  readonly longPrompt?: TokenPrices & { readonly over: number };
}
/** What is known about a model besides how to call it. */
export interface ModelFacts {
  readonly price?: ModelPrice;
  /** Tokens of a prompt and its answer together. */
  readonly contextWindow?: number;
  /** Tokens of one answer at most. */
  readonly maxOutputTokens?: number;
}
