import type { JournalRecord, RunJournal } from "@sluice/core";
import { exportLines, readExport, verifyExport } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { readRecordedRun } from "../../packages/core/src/journal/replay/recorded-run.ts";
import { rehashed } from "../support/tampering.ts";

// Files by someone who can hash: each chain in them is whole.

type Draft = Pick<JournalRecord, "ordinal" | "stepId" | "phase">;

function journal(runId: string, drafts: readonly Draft[], parentId?: string): RunJournal {
  const started = JSON.stringify([{ at: 1, type: "run.started", executionId: null, attempt: null, data: {} }]);
  const start: Draft = { ordinal: -1, stepId: "start", phase: "lifecycle" };
  const records = [start, ...drafts].map(
    (draft, seq): JournalRecord => ({
      ...draft,
      seq,
      incarnation: "i",
      value: draft.phase === "open" ? "" : "null",
      events: seq === 0 ? started : "[]",
      hash: "",
    }),
  );
  const claimed = { records: records.length, head: "" };
  return rehashed({ runId, input: null, records, claimed, ...(parentId === undefined ? {} : { parentId }) });
}

function fileOf(journals: readonly RunJournal[]): Uint8Array {
  return Buffer.from([...exportLines(journals)].join(""));
}

const MANY = 8_000;
const numbers = Array.from({ length: MANY }, (_, index) => index);
/** What a look at each sibling for each record would take is minutes. */
const SHORT_MS = 30_000;

describe("an export of thousands of siblings and thousands of steps", () => {
  const siblings = numbers.map((index) => journal(`r1/fan/c${index}`, [], "r1"));
  const opening = (stepId: (index: number) => string): readonly RunJournal[] => [
    journal(
      "r1",
      numbers.map((ordinal): Draft => ({ ordinal, stepId: stepId(ordinal), phase: "open" })),
    ),
    ...siblings,
  ];

  test.each([
    ["that began others", (index: number) => `s${index}`, MANY],
    ["that began all of them", () => "fan", 0],
  ] as const)("%s is checked in the time of reading it", (_what, stepId, faults) => {
    const read = readExport(fileOf(opening(stepId)));
    const began = performance.now();
    expect(verifyExport(read).faults).toHaveLength(faults);
    expect(performance.now() - began).toBeLessThan(SHORT_MS);
  });
});

describe("records that no run leaves, in a chain that is whole", () => {
  const step = (ordinal: number, phase: JournalRecord["phase"], stepId = `s${Math.floor(ordinal)}`): Draft => ({
    ordinal,
    stepId,
    phase,
  });
  test.each<readonly [string, readonly Draft[]]>([
    ["a step between two others", [step(0, "done"), step(0.5, "done"), step(1, "done")]],
    ["a step that is done twice", [step(0, "done"), step(0, "done")]],
    ["a step that opens twice", [step(0, "open"), step(0, "open"), step(0, "done")]],
    ["a step that opens after it is done", [step(0, "done"), step(0, "open")]],
    ["a step that is done after the next", [step(0, "open"), step(1, "done"), step(0, "done")]],
    ["a step that is left out", [step(0, "done"), step(2, "done")]],
    ["a step with two names", [step(0, "open", "a"), step(0, "done", "b")]],
    ["a step before all", [step(-1, "done")]],
  ])("%s: are not replayed as if they were not there", (_what, drafts) => {
    expect(() => readRecordedRun(journal("r1", drafts))).toThrow(expect.objectContaining({ code: "journal_damaged" }));
  });

  test("what a run does leave is", () => {
    const drafts = [step(0, "done"), step(1, "open"), step(1, "done"), step(2, "open")];
    expect(readRecordedRun(journal("r1", drafts)).steps).toHaveLength(3);
  });
});
