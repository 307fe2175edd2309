// A run that an orchestrator asked for when its own run ended.
import { type Json, type RunHost, SluiceError } from "@sluice/core";
import { digestOf, readEnd, readOutcome } from "@sluice/core/runtime";
import { journalsOf, startedIn } from "./run-started.ts";

/** So many runs may follow each other without a person. */
const MOST_IN_A_ROW = 3;

/** The run that a run follows, as `run.started` records it. */
export type Follows = {
  readonly runId: string;
  /** From 1: how many runs in a row have followed another one, with this one. */
  readonly number: number;
};

/**
 * What the run asks for that follows another one. Throws Session `run_unknown`, `follow_up_missing` for a run that has not ended
 * or asked for none, and `follow_up_limit` for the fourth in a row.
 */
export async function followUpOf(
  host: RunHost,
  runId: string,
): Promise<{ readonly input: Json; readonly follows: Follows }> {
  const journals = await journalsOf(host, runId);
  const last = journals.find((journal) => journal.runId === runId)?.records.at(-1);
  const end = last === undefined ? undefined : readEnd(last);
  const wish = end === undefined ? undefined : readOutcome(end).acknowledgement?.followUp;
  if (wish === undefined) {
    const message = `run ${runId} ${end === undefined ? "has not ended" : "asks for no run that follows it"}`;
    throw new SluiceError("Session", "follow_up_missing", message);
  }
  const number = followed(startedIn(journals)?.data.follows) + 1;
  if (number > MOST_IN_A_ROW) {
    const message = `run ${runId} already follows ${MOST_IN_A_ROW} runs in a row; start a new run yourself if it is wanted`;
    throw new SluiceError("Session", "follow_up_limit", message);
  }
  return { input: wish.input, follows: { runId, number } };
}

/** The id of the run that follows another one: always the same, so that it is started once. */
export function followUpId(runId: string): string {
  return `r${digestOf({ follows: runId }).slice(0, 10)}`;
}

function followed(follows: Json | undefined): number {
  const number = typeof follows === "object" && follows !== null && "number" in follows ? follows.number : undefined;
  return typeof number === "number" ? number : 0;
}
