/** US dollars per million tokens. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  /** Input read from the provider's cache; default `input`. */
  readonly cacheRead?: number;
  /** Input written to the provider's cache; default `input`. */
  readonly cacheWrite?: number;
}
export interface ModelPrice extends TokenPrices {
  /** The prices of a whole call whose prompt has more than `over` tokens. */
  readonly longPrompt?: TokenPrices & { readonly over: number };
}
export interface ModelFacts {
  readonly price?: ModelPrice;
  /** Maximum tokens of a prompt and its reply together. */
  readonly contextWindow?: number;
  /** Maximum tokens of one reply. */
  readonly maxOutputTokens?: number;
}
