// List prices of the providers' own APIs at their standard tier, in US dollars per million tokens, as of 2026-11-21; `prices` of
// a session replaces them. If two sources disagree or a lower price is temporary, the higher price is used, so that caps hold.
// Prices for batches, faster tiers and regions are not included.

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

const K = 1_000;
const MILLION = 1_000_000;

/** Factors for the prices of a call whose prompt is longer than `over` tokens. */
export interface Longer {
  readonly over: number;
  readonly input: number;
  readonly output: number;
}
const OPENAI_LONG: Longer = { over: 272 * K, input: 2, output: 1.5 };
const GOOGLE_LONG: Longer = { over: 200 * K, input: 2, output: 1.5 };

/** Its prices, its context window, the most tokens of its replies, and what longer prompts cost. */
export type ModelRow = readonly [
  prices: readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number],
  contextWindow?: number | undefined,
  maxOutputTokens?: number | undefined,
  longer?: Longer,
];

/** Models of one provider by name, without dates. */
interface PriceTable {
  readonly asOf: string;
  readonly sources: readonly string[];
  readonly models: Readonly<Record<string, ModelRow>>;
}

/** Cache writes are priced for five minutes, the requested lifetime. */
const ANTHROPIC: PriceTable = {
  asOf: "2026-11-21",
  sources: [
    "https://platform.claude.com/docs/en/about-claude/pricing",
    "https://platform.claude.com/docs/en/models/overview",
  ],
  models: {
    "claude-fable-5-1": [[10, 50, 0.25, 12.5], MILLION, 128 * K],
    "claude-fable-5": [[10, 50, 1, 12.5], MILLION],
    "claude-opus-5-5": [[4, 20, 0.2, 5], MILLION, 128 * K],
    "claude-opus-5": [[5, 25, 0.5, 6.25], MILLION, 128 * K],
    "claude-opus-4-8": [[5, 25, 0.5, 6.25], MILLION, 128 * K],
    "claude-opus-4-7": [[5, 25, 0.5, 6.25], MILLION],
    "claude-opus-4-6": [[5, 25, 0.5, 6.25], MILLION, 128 * K],
    "claude-opus-4-5": [[5, 25, 0.5, 6.25], 200 * K, 64 * K],
    "claude-sonnet-5-5": [[2, 10, 0.2, 2.5], MILLION, 128 * K],
    "claude-sonnet-5": [[2, 10, 0.2, 2.5], MILLION, 128 * K],
    "claude-sonnet-4-6": [[3, 15, 0.3, 3.75], MILLION, 128 * K],
    "claude-sonnet-4-5": [[3, 15, 0.3, 3.75], 200 * K, 64 * K, { over: 200 * K, input: 2, output: 1.5 }],
    "claude-haiku-5-5": [[0.1, 0.5, 0.01, 0.125], MILLION, 128 * K, { over: 100 * K, input: 5, output: 5 }],
    "claude-haiku-4-5": [[1, 5, 0.1, 1.25], 200 * K, 64 * K],
  },
};

const OPENAI_WINDOW = 1_050 * K;

const OPENAI: PriceTable = {
  asOf: "2026-11-21",
  sources: ["https://developers.openai.com/api/docs/pricing", "https://developers.openai.com/api/docs/models"],
  models: {
    "gpt-6.2-astra": [[8, 40, 0.4, 10], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6.2-sol": [[2, 10, 0.1, 2.5], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6.1-sol": [[2, 10, 0.1, 2.5], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6.1-terra": [[1, 5, 0.05, 1.25], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6-astra": [[10, 50, 1, 12.5], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6-sol": [[2, 10, 0.2, 2.5], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-6-luna": [[0.1, 0.5, 0.01, 0.125], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-5.6-sol": [[5, 30, 0.5, 6.25], OPENAI_WINDOW, undefined, OPENAI_LONG],
    "gpt-5.6-terra": [[2, 12, 0.2, 2.5], OPENAI_WINDOW, undefined, OPENAI_LONG],
    "gpt-5.6-luna": [[0.2, 1.2, 0.02, 0.25], OPENAI_WINDOW, undefined, OPENAI_LONG],
    "gpt-5.5": [[5, 30, 0.5], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-5.4": [[2.5, 15, 0.25], OPENAI_WINDOW, 128 * K, OPENAI_LONG],
    "gpt-5.4-mini": [[0.75, 4.5, 0.075], 400 * K, 128 * K],
    "gpt-5.4-nano": [[0.2, 1.25, 0.02], 400 * K],
    "gpt-5.2": [[1.75, 14, 0.175], 400 * K],
    "gpt-5.1": [[1.25, 10, 0.125], 400 * K],
    "gpt-5": [[1.25, 10, 0.125], 400 * K],
    "gpt-5-mini": [[0.25, 2, 0.025], 400 * K],
    "gpt-5-nano": [[0.05, 0.4, 0.005], 400 * K],
    "gpt-4.1": [[2, 8, 0.5], MILLION],
    "gpt-4.1-mini": [[0.4, 1.6, 0.1], MILLION],
    "gpt-4.1-nano": [[0.1, 0.4, 0.025], MILLION],
  },
};

const GOOGLE_WINDOW = 1_048_576;

const GOOGLE: PriceTable = {
  asOf: "2026-11-21",
  sources: ["https://ai.google.dev/gemini-api/docs/pricing"],
  models: {
    // Half price until 2026-12-31.
    "gemini-3.8-flash": [[1.5, 7.5, 0.15], GOOGLE_WINDOW, 65_536],
    "gemini-3.7-flash": [[1.5, 7.5, 0.15], MILLION],
    "gemini-3.6-flash": [[1.5, 7.5, 0.15], MILLION],
    "gemini-3.5-flash": [[1.5, 9, 0.15], MILLION],
    "gemini-3.5-flash-lite": [[0.3, 2.5, 0.03]],
    "gemini-3.1-pro-preview": [[2, 12, 0.2], GOOGLE_WINDOW, 65_536, GOOGLE_LONG],
    "gemini-3.1-flash-lite": [[0.25, 1.5, 0.025], MILLION],
    "gemini-3-flash-preview": [[0.5, 3, 0.05], MILLION],
    "gemini-2.5-pro": [[1.25, 10, 0.125], undefined, undefined, GOOGLE_LONG],
    "gemini-2.5-flash": [[0.3, 2.5, 0.03], GOOGLE_WINDOW],
    "gemini-2.5-flash-lite": [[0.1, 0.4, 0.01], MILLION],
  },
};

/** By the provider's name in model ids. */
export const PRICE_TABLES: Readonly<Record<string, PriceTable>> = {
  anthropic: ANTHROPIC,
  openai: OPENAI,
  google: GOOGLE,
};
