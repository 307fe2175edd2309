import { field, type Json, type RunJournal } from "@sluice/core";

/** What the model steps of a run and its children recorded, so that caps go on from there after a restart. */
export function recordedSpending(journals: readonly RunJournal[]): {
  readonly tokens: number;
  readonly workedMs: number;
} {
  let tokens = 0;
  let workedMs = 0;
  for (const { records } of journals) {
    for (const { phase, stepId, value } of records) {
      if (phase !== "done" || !/\/turn\/\d+\/model(?:\/\d+)?$/.test(stepId)) continue;
      const recorded: Json = JSON.parse(value);
      const usage = field(field(recorded, "reply"), "usage");
      tokens += count(field(usage, "inputTokens")) + count(field(usage, "outputTokens"));
      workedMs = Math.max(workedMs, count(field(field(recorded, "worked"), "runMs")));
    }
  }
  return { tokens, workedMs };
}

function count(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
