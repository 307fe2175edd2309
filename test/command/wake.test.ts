import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Json } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { expect, test } from "vitest";
import { at, type Ended, lines, printed, textAt } from "../support/command.ts";
import { NAPS, SLEEPING, type SleepingDesk, sleepingDesk, untilDue } from "../support/sleeping-desk.ts";

const JSON_OUT = ["--output-format", "json"];
const HOUR = 3_600_000;

async function started(here: SleepingDesk, pipeline: string, ms: number, ...more: readonly string[]): Promise<Ended> {
  return await here.sluice([
    "run",
    `${SLEEPING}#${pipeline}`,
    "--input",
    `ms:=${ms}`,
    "--trust",
    "--suspend-sleeps",
    ...more,
  ]);
}
async function sleeper(here: SleepingDesk, pipeline: string, ms: number): Promise<string> {
  return textAt(printed(await started(here, pipeline, ms, ...JSON_OUT)), "runId");
}
/** Wakes what is due, as soon as something is. */
async function woken(here: SleepingDesk): Promise<Ended> {
  await untilDue(here.store);
  return await here.sluice(["wake", ...JSON_OUT]);
}
function runsOf(ended: Ended): readonly Json[] {
  const runs = at(printed(ended), "runs");
  if (!Array.isArray(runs)) throw new Error(`no runs:\n${ended.stdout}\n${ended.stderr}`);
  return runs;
}

test("a run that is left asleep is suspended with exit code 3, says until when, and wake continues it", async () => {
  const here = sleepingDesk();
  const before = Date.now();
  const left = await started(here, "napping", 2_000, ...JSON_OUT);
  expect(left.code).toBe(3);
  const runId = textAt(printed(left), "runId");
  const wakeAt = at(printed(left), "suspended", "wakeAt");
  expect(at(printed(left), "suspended")).toMatchObject({ reason: "sleeping", requests: [] });
  expect(wakeAt).toBeGreaterThanOrEqual(before + 2_000);
  expect(left.stderr).toMatch(/the run sleeps until .*then sluice serve, or sluice wake, continues it/);
  const done = await woken(here);
  expect([done.code, at(printed(done), "runs")]).toEqual([0, [{ runId, outcome: "ended", status: "completed" }]]);
  const again = await here.sluice(["wake"]);
  expect([again.code, again.stdout]).toEqual([0, "no run is due\n"]);
  const verified = await here.sluice(["audit", runId, "--verify"]);
  expect(verified.code).toBe(0);
});

test("without a store, wake does nothing and makes none; a store that is named has to exist", async () => {
  const here = sleepingDesk();
  const idle = await here.sluice(["wake"]);
  expect([idle.code, idle.stdout]).toEqual([0, "no run is due\n"]);
  expect((await here.sluice(["runs", "--store", here.store])).code).toBe(4);
  expect((await here.sluice(["wake", "--store", join(here.folder, "none")])).code).toBe(4);
});

test("Ctrl-C leaves a run asleep that sleeps here, which is said before", async () => {
  const here = sleepingDesk();
  const running = here.start(["run", `${SLEEPING}#napping`, "--input", `ms:=${HOUR}`, "--trust", ...JSON_OUT]);
  await running.said(
    "stderr",
    /the run sleeps until .* \(in (?:1h00m|59m\d\ds)\)\. Ctrl-C leaves it asleep; sluice serve, or sluice wake/,
  );
  running.child.kill("SIGINT");
  const ended = await running.ended;
  expect([ended.code, at(printed(ended), "suspended", "reason")]).toEqual([130, "sleeping"]);
  const wakeAt = at(printed(ended), "suspended", "wakeAt");
  const runId = textAt(printed(ended), "runId");

  const listed = await here.sluice(["runs", "--sleeping", ...JSON_OUT]);
  expect(at(printed(listed), "runs", 0)).toMatchObject({ runId, status: "suspended", suspended: "sleeping", wakeAt });
  expect((await here.sluice(["runs"])).stdout).toMatch(/sleeping .*wakes at .* \(in (?:1h00m|5\dm)/);
  expect(at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "wakeAt")).toBe(wakeAt);
  const shown = await here.sluice(["show", runId]);
  expect(shown.stdout).toMatch(/suspended \(sleeping\)[\s\S]*wakes at/);

  const resumed = here.start(["resume", runId, "--trust"]);
  await resumed.said("stderr", /the run sleeps until .* Ctrl-C leaves it asleep/);
  resumed.child.kill("SIGTERM");
  expect((await resumed.ended).code).toBe(143);
  expect(at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "wakeAt"), "the same time").toBe(wakeAt);
  const cancelled = await here.sluice(["cancel", runId]);
  expect(cancelled.code).toBe(0);
  expect(at(printed(await here.sluice(["runs", "--sleeping", ...JSON_OUT])), "runs")).toEqual([]);
});

test("a run that then waits for a person is left open, with the line that answers; the answer makes it due", async () => {
  const here = sleepingDesk();
  const runId = await sleeper(here, "approved", 2_000);
  const waiting = await woken(here);
  const [line] = [textAt(printed(waiting), "runs", 0, "lines", 0)];
  expect(waiting.code).toBe(0);
  expect(at(printed(waiting), "runs", 0)).toMatchObject({ runId, outcome: "waiting" });
  expect((await here.sluice(["wake"])).stdout).toBe("no run is due\n");
  const words = line.replaceAll("'", "").split(" ").slice(1);
  expect((await here.sluice(words)).code).toBe(0);
  const done = await here.sluice(["wake"]);
  expect([done.code, done.stdout]).toEqual([0, `${runId}  completed\n`]);
});

test("a run that cannot be continued is reported with its reason, and stops no other", async () => {
  const here = sleepingDesk();
  const bad = await sleeper(here, "napping", 2_000);
  here.write("other/sluice.config.js", NAPS);
  here.write("other/package.json", '{ "type": "module" }');
  const inOther = ["--cwd", join(here.folder, "other"), "--store", here.store, ...JSON_OUT];
  const good = textAt(printed(await started(here, "napping", 2_000, ...inOther)), "runId");
  // Changed since it was trusted.
  here.write("sluice.config.js", "export default { executors: [] };\n");
  await untilDue(here.store, 2);
  const ended = await here.sluice(["wake", "--store", here.store, ...JSON_OUT]);
  const outcomes = new Map(runsOf(ended).map((one) => [textAt(one, "runId"), one]));
  expect(outcomes.get(good)).toMatchObject({ outcome: "ended", status: "completed" });
  expect(outcomes.get(bad)).toMatchObject({ outcome: "refused", code: "folder_untrusted" });
  expect(ended.code).toBe(4);
  expect(at(printed(await here.sluice(["show", bad, ...JSON_OUT])), "status")).toBe("suspended");
});

test("wake is for people: a run's own process cannot use it, nor serve", async () => {
  const here = sleepingDesk();
  for (const command of ["wake", "serve"]) {
    const ended = await here.sluice([command], { env: { SLUICE_RUN: "r1" } });
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("is for people")]);
  }
});

test("a store from another machine is refused by wake and by serve, since no person has looked at what would run", async () => {
  const here = sleepingDesk();
  await sleeper(here, "napping", 2_000);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  db.exec("UPDATE wakes SET wake_at = 1; UPDATE store SET machine = 'another'");
  db.close();
  for (const command of [["wake"], ["serve", "--no-metrics"]]) {
    const refused = await here.sluice(command);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("belongs to another machine")]);
    expect((await here.sluice([...command, "--adopt-store"])).code).toBe(2);
  }
});

test("a run whose code fails each time is left alone after five resumes without a step, and the line that resumes it is printed", async () => {
  const here = sleepingDesk(`export default { executors: [{ kind: "nap", act: async (_input, scope) => {
    await scope.sleep("sleep", (await scope.steps.now("from")) + 2_000);
    throw new Error("the disk of the executor failed");
  } }] };\n`);
  const runId = await sleeper(here, "napping", 2_000);
  const seen: string[] = [];
  for (let n = 0; n < 8 && seen.at(-1) !== "stuck"; n += 1)
    seen.push(textAt(printed(await woken(here)), "runs", 0, "outcome"));
  // The first resume records the end of the sleep.
  expect(seen).toEqual(["failed", "failed", "failed", "failed", "failed", "failed", "stuck"]);
  const text = await here.sluice(["wake"]);
  expect([text.code, text.stdout]).toEqual([4, expect.stringContaining(`sluice resume ${runId}`)]);
  const host = sqliteHost(here.store, { readOnly: true });
  const resumes = (await host.records(runId)).filter(({ stepId }) => stepId === "resume");
  await host.close();
  expect(resumes).toHaveLength(6);
});

test("stream-json prints one line a run as it comes, then the result", async () => {
  const here = sleepingDesk();
  const runId = await sleeper(here, "napping", 2_000);
  await untilDue(here.store);
  const out = await here.sluice(["wake", "--output-format", "stream-json"]);
  expect(lines(out)).toMatchObject([
    { runId, outcome: "ended", status: "completed" },
    { type: "result", woken: 1 },
  ]);
});
