import { join } from "node:path";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, replayRun } from "@sluice/stages";
import { JOURNAL_VERSION } from "@sluice/stages/runtime";
import { expect, onTestFinished, test } from "vitest";
import { inTurn } from "../fixtures/golden/pipelines.ts";
import { at, printed, textAt } from "../support/command.ts";
import { copyOf, movedCopyOf } from "./copy.ts";
import { GOLDEN, VERSION_1 } from "./fixtures.ts";
import { rewrite } from "./rewrite.ts";
import { AGAIN, finishes } from "./script.ts";

const JSON_OUT = ["--output-format", "json"];

test("a run of another journal version is refused by resume, fork and replay, and nothing of it is run or changed", async () => {
  const copy = await movedCopyOf(join(GOLDEN, "killed"));
  rewrite(copy.store, `"journalVersion":${JOURNAL_VERSION}`, `"journalVersion":${JOURNAL_VERSION + 1}`);
  const { runId } = copy;
  const before = (await copy.sluice("audit", runId, "--verify", "--json")).stdout;
  const model = ["--model", copy.script({ draft: [AGAIN, AGAIN], check: [AGAIN, AGAIN, finishes("refused")] })];
  for (const words of [
    ["resume", runId, "--adopt-store", ...model],
    ["fork", runId, "--from", "check#1", "--adopt-store", ...model],
    ["replay", runId],
  ]) {
    const refused = await copy.sluice(...words, "--trust", ...JSON_OUT);
    expect([words[0], refused.code, textAt(printed(refused), "error", "code")]).toEqual([
      words[0],
      4,
      "journal_version",
    ]);
    expect(textAt(printed(refused), "error", "message")).toBe(
      `run ${runId} has journal version ${JOURNAL_VERSION + 1}, and this version of Sluice reads version ${JOURNAL_VERSION}; use the version of Sluice that started it`,
    );
  }
  expect((await copy.sluice("audit", runId, "--verify", "--json")).stdout).toBe(before);
  expect(at(printed(await copy.sluice("runs", ...JSON_OUT)), "runs")).toHaveLength(1);
});

/** Recorded by version 1 and never recorded again. */
test("a run that version 1 recorded verifies, and resume, fork and replay refuse it", async () => {
  const copy = await copyOf(VERSION_1);
  const { runId } = copy;
  const audit = await copy.sluice("audit", runId, "--verify");
  expect([audit.code, audit.stderr]).toEqual([0, ""]);
  expect(audit.stdout).toContain("verified: every record is unchanged");
  const host = sqliteHost(copy.store, { adopt: true });
  const session = createSession({ model: copy.script({}), cwd: copy.workspace, host: host });
  onTestFinished(async () => {
    await session.close();
    await host.close();
  });
  const journals = await host.journal(runId);
  for (const refused of [
    () => replayRun(inTurn, journals),
    () => session.resume(inTurn, runId),
    () => session.fork(inTurn, runId, { from: "check#1" }),
  ])
    await expect(refused()).rejects.toMatchObject({ class: "Host", code: "journal_version" });
  expect(await host.journal(runId)).toEqual(journals);
});
