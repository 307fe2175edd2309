import type { JournalRecord, Json } from "@sluice/core";
import { GENESIS, hashRecord } from "@sluice/core/host";

/** A record that is still to be chained; without events unless it says which. */
export type RecordDraft = Pick<JournalRecord, "ordinal" | "stepId" | "phase" | "value"> &
  Partial<Pick<JournalRecord, "events">>;

export const life = (stepId: string, value = ""): RecordDraft => ({ ordinal: -1, stepId, phase: "lifecycle", value });
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
    const unhashed = { events: "[]", ...draft, seq, incarnation: "i1" };
    head = hashRecord(head, runId, unhashed);
    return { ...unhashed, hash: head };
  });
}
