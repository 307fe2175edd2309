import type { Json } from "@sluice/core";

/** One thing of an agent state's transcript as its run's records hold it, in the order it was recorded. */
export type TranscriptEntry = {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  /** 0 for what stands before the first turn. */
  readonly turn: number;
} & (
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  /** `input` is undefined where the arguments could not be read. */
  | { readonly kind: "call"; readonly callId: string; readonly tool: string; readonly input: Json | undefined }
  | { readonly kind: "result"; readonly callId: string; readonly ok: boolean; readonly output: Json }
  /** What a person said to the stage while it was at work. */
  | { readonly kind: "message"; readonly by: string; readonly text: string }
);
