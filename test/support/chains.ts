import { GENESIS, hashRecord, type JournalRecord, type Json } from "@sluice/core";

/** A record that is still to be chained. */
export type RecordDraft = Pick<JournalRecord, "ordinal" | "stepId" | "phase" | "value">;

export const life = (stepId: string, value = ""): RecordDraft => ({ ordinal: -1, stepId, phase: "life", value });
export const step = (ordinal: number, stepId: string, phase: "open" | "done", value: Json): RecordDraft => ({
  ordinal,
  stepId,
  phase,
  value: JSON.stringify(value),
});

/** Records as a host would have written them. */
export function chain(runId: string, drafts: readonly RecordDraft[]): readonly JournalRecord[] {
  let head = GENESIS;
  return drafts.map((draft, seq) => {
    const unhashed = { ...draft, seq, incarnation: "i1", events: "[]" };
    head = hashRecord(head, runId, unhashed);
    return { ...unhashed, hash: head };
  });
}
