import type { LanguageModelV4 } from "@ai-sdk/provider";

/** The position of a model call, from the run's journal. */
export interface TurnPosition {
  /** The state's id. */
  readonly stage: string;
  /** From 0, over all attempts and visits of the stage in the run. */
  readonly turn: number;
  /** Of an item of a list: its key. */
  readonly key?: string;
  /** From 1, over all attempts of this turn. */
  readonly attempt: number;
  /** Masked in cassettes. */
  readonly runId?: string;
  /** The state's execution, with its own attempt and that attempt's turn, as in events. */
  readonly execution?: { readonly executionId: string; readonly attempt: number; readonly turn: number };
  /** False if the state does not want the provider to cache its prompt. */
  readonly cache?: false;
  /** False if no result in the prompt has files. */
  readonly files?: false;
}

/** An agent of another program that makes the tool calls of a run, in place of a model. */
export interface OutsideAgent {
  /** Such as `claude`. */
  readonly name: string;
  readonly version?: string;
  /** What is known about its own tools, recorded with the run: `hard` if it has none, or none that a refusal does not stop. */
  readonly class: "hard" | "guarded" | "advisory";
  /** The run starts it for a state. Without this, the agent's own program drives the run from outside. */
  readonly started?: true;
}

/** How a provider is reached: what a person can change when a call fails. Holds no key. */
export interface ProviderAccess {
  readonly provider: string;
  /** Where requests go, without a query. */
  readonly address: string;
  /** What sets the address: a variable, or a field of the config. */
  readonly addressFrom: string;
  /** The variable that is read for the key; absent if the provider reads none. */
  readonly keyVariable?: string;
  readonly hasKey: boolean;
}

/** A model that is ready to be called. */
export interface ResolvedModel {
  /** `anthropic/claude-…` */
  readonly id: string;
  /** The id that determines prices and limits, if it differs: for a cassette, that of the recorded model. */
  readonly pricedAs?: string;
  /** Values that must never be shown, recorded or sent to a model. */
  readonly secrets: readonly string[];
  /** The media types of files that it reads in results of tools; absent if it reads only text. */
  readonly takes?: readonly string[];
  /** If it is an agent: it may be silent for as long as it likes, and the run records it. */
  readonly agent?: OutsideAgent;
  /** How it is started, if it is an agent of another program, and its PATH. No run may write the files that its command names. */
  readonly started?: { readonly command: readonly string[]; readonly path: string | undefined };
  /** How its provider is reached; absent for scripts, cassettes and model objects. */
  readonly access?: ProviderAccess;
  /** The provider's model for one attempt of one turn: one of a few objects, except for scripts and cassettes. */
  at(position: TurnPosition): LanguageModelV4;
  /** An attempt of a state is over, which waits until the model has released what it holds for it. Never rejects. */
  ended?(position: Pick<TurnPosition, "stage" | "runId">): Promise<void>;
}

/** The models of a state in the order in which they are tried. */
export type ResolvedModels = readonly [ResolvedModel, ...ResolvedModel[]];

/** The same model with other calls. */
export function withCalls(
  { provider, modelId, supportedUrls }: LanguageModelV4,
  calls: Pick<LanguageModelV4, "doGenerate" | "doStream">,
): LanguageModelV4 {
  return { specificationVersion: "v4", provider, modelId, supportedUrls, ...calls };
}
