// The names in files that end a run or go back from an interrupt, in every format.

export type Outcome = "completed" | "failed" | "cancelled";

/** The target that goes back to the state that an interrupt left. */
export const RETURN = "$return";

/** Names that plainly mean success. */
const SUCCESS: ReadonlySet<string> = new Set([
  "complete",
  "completed",
  "done",
  "end",
  "finished",
  "passed",
  "succeeded",
  "success",
]);

/** How a run ends in an end of this name. `outcome` is what its document says of it. */
export function outcomeOf(name: string, outcome: Outcome | undefined): Outcome {
  if (outcome !== undefined) return outcome;
  const word = name.toLowerCase();
  if (word === "failed" || word === "error") return "failed";
  return word === "cancelled" ? "cancelled" : "completed";
}

/** Whether a reader of the document sees how a run ends there. */
export function isPlainEnd(name: string, outcome: Outcome | undefined): boolean {
  return outcome !== undefined || outcomeOf(name, outcome) !== "completed" || SUCCESS.has(name.toLowerCase());
}
