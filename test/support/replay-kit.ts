import type { EventDraft, Json, RunHost, RunJournal, RunProgram, StepCall } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect } from "vitest";
import type { RecordDifference } from "../../packages/core/src/journal/replay/record-diff.ts";
import {
  type NextRecord,
  type ReplayResult,
  replayJournals,
} from "../../packages/core/src/journal/replay/replay-journals.ts";
import { type HandClock, handClock } from "./hand-clock.ts";
import { endOf, start, turns } from "./journal.ts";
import { rehashed } from "./tampering.ts";

export const decides = { decides: () => true };
export const initEvent = (text: string): EventDraft => ({
  type: "stage.init",
  executionId: "a#1",
  attempt: 1,
  data: { text },
});
/** The function of a step that records an event of its own. */
export const saying =
  <T extends Json>(text: string, value: T) =>
  ({ event }: StepCall): T => {
    event(initEvent(text));
    return value;
  };

/** A host in memory, and the clock it goes by. */
export function clocked(): { readonly clock: HandClock; readonly host: RunHost } {
  const clock = handClock();
  return { clock, host: createHost(createMemoryJournals().connect(), { clock }) };
}

/** Lets sixty milliseconds pass, with all that happens in them. */
export async function pass(clock: HandClock): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) {
    await turns(4);
    clock.turn(10);
  }
}

/** What a program records that waits for less than sixty milliseconds. */
export async function recorded(program: RunProgram): Promise<readonly RunJournal[]> {
  const { clock, host } = clocked();
  const task = await start(host, program);
  await pass(clock);
  await endOf(task);
  const journals = await host.journal("r1");
  await host.close();
  return journals;
}

export async function replayed(
  journals: readonly RunJournal[],
  program: RunProgram,
  showsCancel: (next: NextRecord) => boolean = () => false,
): Promise<ReplayResult> {
  return await replayJournals({ journals, program, cancelIn: (next) => (showsCancel(next) ? "shown" : undefined) });
}

export async function differenceOf(
  journals: readonly RunJournal[],
  program: RunProgram,
): Promise<RecordDifference | undefined> {
  return (await replayed(journals, program)).difference;
}

/** Only the first records of the root, as they stood when the run had come so far. */
export function cut([root, ...below]: readonly RunJournal[], length: number): readonly RunJournal[] {
  const { end: _end, ...open } = root ?? expect.fail();
  return [rehashed({ ...open, records: open.records.slice(0, length) }), ...below];
}

/** The place of a record, as a difference names it. */
export function placeIn(journals: readonly RunJournal[], stepId: string, phase = "done", runId = "r1") {
  const { records } = journals.find((each) => each.runId === runId) ?? expect.fail();
  const record = records.find((each) => each.stepId === stepId && each.phase === phase) ?? expect.fail();
  return { runId, stepId, seq: record.seq };
}
