import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { at, lines, printed, textAt } from "../support/command.ts";
import { deskHere, forkedRun } from "../support/command-here.ts";

test("audit lists every event in order, children indented behind their fork, and --verify finds them as they were written", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const { code, stdout } = await here.sluice(["audit", runId, "--verify"]);
  expect(code).toBe(0);
  expect(stdout).toContain("verified: every record is unchanged");
  const types = stdout.split("\n").map((line) => /^\d+\/\d+ +\+[\d.]+ {2}( *)([\w.]+)/.exec(line));
  const shown = types.flatMap((match) => (match === null ? [] : [`${match[1]}${match[2]}`]));
  const fork = shown.indexOf("fanOut.started");
  const joined = shown.indexOf("fanOut.joined");
  expect(shown[0]).toBe("run.started");
  expect(shown.at(-1)).toBe("run.finished");
  expect(shown.slice(fork + 1, joined).filter((type) => type.startsWith("  run."))).toEqual([
    "  run.started",
    "  run.finished",
    "  run.started",
    "  run.finished",
  ]);
});

test("a filter by a stage or a tool that the run never had says which there are, and shows nothing", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const [stage, tool, known] = await Promise.all([
    here.sluice(["audit", runId, "--stage", "strat", "--json"]),
    here.sluice(["audit", runId, "--tool", "bash"]),
    here.sluice(["audit", runId, "--stage", "start", "--verdict", "refused"]),
  ]);
  expect([stage.code, printed(stage).events]).toEqual([0, []]);
  expect(stage.stderr).toMatch(/^sluice: no event has the stage strat; this run has: start, \w/);
  expect(tool.stderr).toMatch(/^sluice: no event has the tool bash; this run has: /);
  expect(known.stderr).toBe("");
});

test("--json is one document with the head, the events and what was verified", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const [plain, verified, stream, show] = await Promise.all([
    here.sluice(["audit", runId, "--json"]),
    here.sluice(["audit", runId, "--verify", "--json"]),
    here.sluice(["audit", runId, "--output-format", "stream-json"]),
    here.sluice(["show", runId, "--output-format", "json"]),
  ]);
  const report = printed(verified);
  expect(Object.keys(report).toSorted()).toEqual(["events", "faults", "head", "records", "runId", "verified"]);
  expect(report).toMatchObject({ runId, verified: true, faults: [] });
  expect(printed(plain).verified).toBeNull();
  expect(report.head).toBe(printed(show).head);
  expect(at(report, "events", 0, "id")).toBe(`${runId}/0/0`);
  const events = lines(stream);
  expect(events.slice(0, -1)).toEqual(report.events);
  expect(events.at(-1)).toMatchObject({ type: "result", runId });
});

test("a head that was kept elsewhere is compared: the same is exit 0, another exit 1, and no head exit 2", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const head = textAt(printed(await here.sluice(["show", runId, "--output-format", "json"])), "head");
  expect((await here.sluice(["audit", runId, "--head", head])).code).toBe(0);
  const other = await here.sluice(["audit", runId, "--head", "0".repeat(64)]);
  expect([other.code, other.stdout.includes("CHANGED")]).toEqual([1, true]);
  expect((await here.sluice(["audit", runId, "--head", "abc"])).code).toBe(2);
});

test.each([
  [
    "an event that was changed",
    "UPDATE records SET events = replace(events, 'completed', 'failed   ') WHERE step_id LIKE 'start#1/a1/%'",
  ],
  ["an event that is no JSON any more", "UPDATE records SET events = 'gone' WHERE step_id = 'start#1/a1/leave'"],
  ["a value that was changed", "UPDATE records SET value = replace(value, 'done', 'fine') WHERE value LIKE '%done%'"],
  ["a record that was removed", "DELETE FROM records WHERE step_id = 'start#1/a1/enter'"],
])("--verify finds %s: exit 1, naming the record", async (_name, change) => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  const { changes } = db.prepare(change).run();
  db.close();
  expect(Number(changes)).toBeGreaterThan(0);
  const { code, stdout } = await here.sluice(["audit", runId, "--verify"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/CHANGED[\s\S]*record \d+/);
});

test("a task that was forged in the run's row is shown by nothing and found by --verify", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  db.prepare("UPDATE runs SET input = ? WHERE run_id = ?").run('{"task":"forged"}', runId);
  db.close();
  const [show, runs, audit] = await Promise.all([
    here.sluice(["show", runId, "--output-format", "json"]),
    here.sluice(["runs", "--output-format", "json"]),
    here.sluice(["audit", runId, "--verify"]),
  ]);
  expect(at(printed(show), "input")).toEqual({ task: "x" });
  expect(at(printed(runs), "runs", 0, "task")).toBe("x");
  expect([audit.code, audit.stdout]).toEqual([1, expect.stringContaining("another input than its journal")]);
});
