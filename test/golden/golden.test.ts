import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Json } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { at, type Ended, printed, textAt } from "../support/command.ts";
import { textIn } from "../support/page-parts.ts";
import { soundPage } from "../support/report-kit.ts";
import { CASES } from "./cases.ts";
import { type Copy, copyOf, movedCopyOf } from "./copy.ts";
import { asked } from "./expected/asked.ts";
import { asleep } from "./expected/asleep.ts";
import { cancelled } from "./expected/cancelled.ts";
import { cancelledAfterKill } from "./expected/cancelled-after-kill.ts";
import { directed } from "./expected/directed.ts";
import { driven } from "./expected/driven.ts";
import { fanOut } from "./expected/fan-out.ts";
import { forked } from "./expected/forked.ts";
import { grantOpen } from "./expected/grant-open.ts";
import { granted } from "./expected/granted.ts";
import { killed } from "./expected/killed.ts";
import { killedInFanOut } from "./expected/killed-in-fan-out.ts";
import { killedInWrite } from "./expected/killed-in-write.ts";
import { nested } from "./expected/nested.ts";
import { outcomeUnknown } from "./expected/outcome-unknown.ts";
import { provider } from "./expected/provider.ts";
import { release } from "./expected/release.ts";
import { resumed } from "./expected/resumed.ts";
import { routed } from "./expected/routed.ts";
import { written } from "./expected/written.ts";
import type { Expected, Files } from "./expected.ts";
import { fileOf, GOLDEN, PIPELINES } from "./fixtures.ts";
import { SEQ_SPACE } from "./rewrite.ts";

const EXPECTED: Readonly<Record<string, Expected>> = {
  asked,
  asleep,
  cancelled,
  "cancelled-after-kill": cancelledAfterKill,
  directed,
  driven,
  "fan-out": fanOut,
  forked,
  "grant-open": grantOpen,
  granted,
  killed,
  "killed-in-fan-out": killedInFanOut,
  "killed-in-write": killedInWrite,
  nested,
  "outcome-unknown": outcomeUnknown,
  provider,
  release,
  resumed,
  routed,
  written,
};
const JSON_OUT = ["--output-format", "json"];

test("each case that is recorded is one that is expected, and holds nothing but its store and its files", () => {
  const folders = readdirSync(GOLDEN, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).toSorted()).toEqual(Object.keys(EXPECTED));
  expect(Object.keys(CASES).toSorted()).toEqual(Object.keys(EXPECTED));
  for (const { name } of folders) expect(readdirSync(join(GOLDEN, name, "store"))).toEqual(["journal.db"]);
});

describe.each(Object.entries(EXPECTED))("the recorded run %s", (name, expected) => {
  const recorded = join(GOLDEN, name);
  test("verifies, and audit, show and report say what happened", async () => {
    const copy = await copyOf(recorded);
    const { runId } = copy;
    const audit = await copy.sluice("audit", runId, "--verify");
    expect([audit.code, audit.stderr]).toEqual([0, ""]);
    expect(audit.stdout).toContain("verified: every record is unchanged");
    for (const other of copy.others) expect((await copy.sluice("audit", other, "--verify")).code).toBe(0);
    const events = await eventsOf(copy);
    expect(keyEvents(events)).toEqual(expected.events);
    const lines = audit.stdout.split("\n").flatMap((line) => {
      const [, type, executionId] = /^\d+\/\d+ +\+[\d.]+ +([\w.]+)(?: +(\w+#\d+)(?::\S+)? )?/.exec(line) ?? [];
      return type === undefined ? [] : [words([type, executionId])];
    });
    expect(lines).toEqual(events.map((event) => words([at(event, "type"), at(event, "executionId")])));
    const show = await copy.sluice("show", runId);
    expect(show.code).toBe(0);
    const report = await copy.sluice("report", runId, "-o", "-");
    expect([report.code, report.stderr]).toEqual([0, ""]);
    const page = textIn(soundPage(report.stdout));
    for (const part of expected.audit) expect(audit.stdout).toContain(part);
    for (const part of expected.show) expect(show.stdout).toContain(part);
    for (const part of expected.report) expect(page).toContain(part);
    expect(filesIn(copy)).toEqual(expected.files);
  });

  test("is replayed as it was recorded", async () => {
    const copy = await copyOf(recorded);
    const replay = await copy.sluice(
      "replay",
      copy.runId,
      "--pipeline",
      `${fileOf(expected.pipeline)}#${expected.pipeline}`,
      ...JSON_OUT,
    );
    expect(printed(replay)).toMatchObject({ runId: copy.runId, identical: true, divergence: null });
    expect(replay.code).toBe(0);
  });

  test("has one byte changed, and verify names the record", async () => {
    const copy = await copyOf(recorded);
    const db = new DatabaseSync(join(copy.store, "journal.db"));
    const [{ seq, events } = {}] = db
      .prepare(
        `SELECT place % ${SEQ_SPACE} AS seq, events FROM records JOIN runs ON no = place / ${SEQ_SPACE} WHERE run_id = ? AND events <> '[]' ORDER BY place DESC`,
      )
      .all(copy.runId);
    db.close();
    const found = String(events).slice(0, 40);
    const bytes = readFileSync(join(copy.store, "journal.db"));
    const where = bytes.lastIndexOf(found);
    expect(where).toBeGreaterThan(0);
    // A digit of the time.
    bytes[where + 10] = (bytes[where + 10] ?? 0) ^ 1;
    writeFileSync(join(copy.store, "journal.db"), bytes);
    const { code, stdout } = await copy.sluice("audit", copy.runId, "--verify");
    expect(code).toBe(1);
    expect(stdout).toMatch(new RegExp(`CHANGED[\\s\\S]*record ${Number(seq)}\\b`));
  });

  const { resumed } = expected;
  if (resumed === "ended")
    test("has ended: a resume prints its result and does nothing", async () => {
      const copy = await movedCopyOf(recorded);
      const again = await resume(copy);
      const status = textAt(printed(again), "status");
      expect(again.code).toBe(status === "completed" ? 0 : 1);
      expect(again.stderr).toContain(`is already ${status}`);
      expect(filesIn(copy)).toEqual(expected.files);
    });
  else
    test("is resumed to its end, and nothing that was done is done again", async () => {
      const copy = await movedCopyOf(recorded);
      const { runId } = copy;
      const before = await eventsOf(copy);
      expect((await copy.sluice("audit", runId, "--verify")).code).toBe(0);
      if (resumed.answer !== undefined) {
        const request = textAt(printed(await copy.sluice("show", runId, ...JSON_OUT)), "requests", 0, "requestId");
        const answered = await copy.sluice("answer", runId, request, ...resumed.answer, "--adopt-store");
        expect([answered.code, answered.stderr]).toEqual([0, ""]);
      }
      const ended = await resume(copy, "--model", copy.script(resumed.script));
      expect(printed(ended)).toMatchObject({ runId, status: "completed", output: resumed.output, error: null });
      expect(ended.code).toBe(0);
      expect(filesIn(copy)).toEqual(resumed.files);

      const after = await eventsOf(copy);
      const known = new Set(before.map((event) => textAt(event, "id")));
      expect(after.filter((event) => known.has(textAt(event, "id")))).toEqual(before);
      expect(keyEvents(after.filter((event) => !known.has(textAt(event, "id"))))).toEqual(resumed.events);
      expect((await copy.sluice("audit", runId, "--verify")).code).toBe(0);
      expect(printed(await copy.sluice("replay", runId, "--trust", ...JSON_OUT))).toMatchObject({ identical: true });
    });
});

/** Resumes a run from another machine's store, whose pipeline file was never named on this one. */
async function resume(copy: Copy, ...more: readonly string[]): Promise<Ended> {
  return await copy.sluice("resume", copy.runId, "--adopt-store", "--trust", ...JSON_OUT, ...more);
}

/** The events that a case lists completely. */
const KEY =
  /^(?:run|grant|request|sleep)\.|^fanOut\.joined$|^call\.(?:decided|finished)$|^route\.decided$|^execution\.(?:suspended|continued)$/;
/** The fields of an event's data in its line, in this order. */
const FIELDS = [
  "kind",
  "tool",
  "state",
  "verdict",
  "answer",
  "outcome",
  "choice",
  "to",
  "status",
  "reason",
  "cause",
  "by",
  "execution",
];

async function eventsOf(copy: Copy): Promise<readonly Json[]> {
  const { events } = printed(await copy.sluice("audit", copy.runId, "--json"));
  return Array.isArray(events) ? events : [];
}

function keyEvents(events: readonly Json[]): readonly string[] {
  return events
    .filter((event) => KEY.test(textAt(event, "type")))
    .map((event) =>
      words([at(event, "type"), at(event, "executionId"), ...FIELDS.map((name) => at(event, "data", name))]),
    );
}

function words(all: readonly (Json | undefined)[]): string {
  return all.filter((word) => word !== undefined).join(" ");
}

/** What is in the workspace beside the pipeline. */
function filesIn({ workspace }: Copy): Files {
  const names = readdirSync(workspace).filter((name) => !PIPELINES.some((file) => file === name));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(workspace, name), "utf8")]));
}
