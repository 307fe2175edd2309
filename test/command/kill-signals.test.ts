import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "@sluice/core";
import { expect, test, vi } from "vitest";
import { createPlace, type Place, pipelineFile, reportOf } from "../support/command-process.ts";
import { type LoopbackModel, lastResults, startLoopbackModel, type Turns } from "../support/loopback-model.ts";
import { isAlive } from "../support/survivors.ts";

// Each test starts several processes, on machines that may do much else.

const says = (id: string, name: string, input: Json) => ({ calls: [{ id, name, input }] });
const DONE = says("end", "submit_work", { said: "done" });
/** Without a wall, behind which a command knows its process by another number, and a named pipe of the workspace is closed. */
const TOOLS = ["run", `${pipelineFile("pipelines.ts")}#tools`, "work", "--output-format", "json", "--sandbox", "off"];

function bash(command: string): Turns {
  return { submit_work: [says("w0", "Bash", { command }), DONE] };
}

function textOf(place: Place, name: string): string | undefined {
  const path = join(place.workspace, name);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Waits until a command of the run has written this file. */
async function written(place: Place, name: string): Promise<string> {
  return await vi.waitFor(
    () => {
      const text = textOf(place, name);
      if (text?.endsWith("\n") !== true) throw new Error(`${name} is not there yet`);
      return text;
    },
    { timeout: 60_000 },
  );
}

async function onlyRun(place: Place) {
  const [run] = await place.look((host) => host.list());
  if (run === undefined) throw new Error("there is no run");
  return run;
}

function turnsOf(model: LoopbackModel, place: Place): readonly string[] {
  return model.asked(place.key).map(({ stage, turn }) => `${stage} ${turn}`);
}

test.each([
  { signal: "SIGINT", code: 130 },
  { signal: "SIGTERM", code: 143 },
] as const)(
  "$signal in a model call suspends the run with exit $code, and none of the run's code runs",
  async (stop) => {
    await using model = await startLoopbackModel({ submit_work: [DONE] });
    const place = createPlace(model.url);
    const held = model.hold(place.key, "submit_work", 0);
    const first = place.start(TOOLS);
    await held.reached;
    first.signal(stop.signal);
    const ended = await first.ended;
    const { runId } = await onlyRun(place);
    expect(ended).toMatchObject({ code: stop.code, signal: null });
    expect(ended.stderr).toMatch(new RegExp(`resume it with: sluice resume ${runId}$`, "m"));
    expect(reportOf(ended)).toMatchObject({
      runId,
      status: "suspended",
      error: null,
      stages: [{ executionId: "work#1", status: "unfinished" }],
      suspended: { reason: "interrupted", requests: [], resume: `sluice resume ${runId}` },
    });
    expect(textOf(place, "hooks.log")).toBeUndefined();
    expect(await onlyRun(place)).toMatchObject({ status: "suspended", suspended: "interrupted" });

    expect(await place.run(["resume", runId])).toMatchObject({ code: 0 });
    expect(textOf(place, "hooks.log")).toBe("exit completed\nnext\n");
    expect(turnsOf(model, place)).toEqual(["submit_work 0", "submit_work 0"]);
    expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
  },
);

test("a command that ends within five seconds of a signal is finished, recorded and never run again", async () => {
  await using model = await startLoopbackModel(
    bash("echo started > started; read -r word < fifo; echo $word >> log.txt"),
  );
  const place = createPlace(model.url);
  spawnSync("mkfifo", [join(place.workspace, "fifo")]);
  const first = place.start(TOOLS);
  await written(place, "started");
  first.signal("SIGTERM");
  await first.said(/SIGTERM: suspending the run/);
  writeFileSync(join(place.workspace, "fifo"), "ran\n");
  expect(await first.ended).toMatchObject({ code: 143 });
  expect(textOf(place, "log.txt")).toBe("ran\n");

  const { runId } = await onlyRun(place);
  expect(await place.run(["resume", runId])).toMatchObject({ code: 0 });
  expect(textOf(place, "log.txt")).toBe("ran\n");
  expect(turnsOf(model, place)).toEqual(["submit_work 0", "submit_work 1"]);
  expect(model.asked(place.key).flatMap(lastResults)).toEqual(["(no output)"]);
});

test("a command that continues for longer is ended with the process, and its outcome is unknown", async () => {
  await using model = await startLoopbackModel(
    bash("echo ran >> log.txt; echo $$ > pid.txt; sleep 600; echo late >> log.txt"),
  );
  const place = createPlace(model.url);
  const first = place.start(TOOLS);
  const pid = Number(await written(place, "pid.txt"));
  first.signal("SIGINT");
  expect(await first.ended).toMatchObject({ code: 130 });
  expect(isAlive(pid)).toBe(false);

  const { runId } = await onlyRun(place);
  expect(await place.run(["resume", runId])).toMatchObject({ code: 0 });
  expect(textOf(place, "log.txt")).toBe("ran\n");
  expect(model.asked(place.key).flatMap(lastResults)).toEqual([expect.stringContaining('"outcome_unknown"')]);
  expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
});

test("a second signal ends the process at once, and the run can be resumed all the same", async () => {
  await using model = await startLoopbackModel(bash("echo ran >> log.txt; echo $$ > pid.txt; sleep 600"));
  const place = createPlace(model.url);
  const first = place.start(TOOLS);
  const pid = Number(await written(place, "pid.txt"));
  first.signal("SIGINT");
  await first.said(/a second one ends the process at once/);
  // Within a moment of the first it would be the same key press, reported twice.
  await vi.waitFor(
    () => {
      first.signal("SIGINT");
      if (isAlive(first.pid)) throw new Error("it is still there");
    },
    { timeout: 30_000, interval: 200 },
  );
  expect(await first.ended).toMatchObject({ code: 130, stdout: "" });

  const { runId } = await onlyRun(place);
  expect(await place.run(["resume", runId])).toMatchObject({ code: 0 });
  expect(isAlive(pid)).toBe(false);
  expect(textOf(place, "log.txt")).toBe("ran\n");
  expect(model.asked(place.key).flatMap(lastResults)).toEqual([expect.stringContaining('"outcome_unknown"')]);
});

test("a signal while a run waits for an answer leaves the request open for a later answer", async () => {
  await using model = await startLoopbackModel({
    submit_work: [says("w0", "Edit", { file_path: "a.txt", old_string: "a", new_string: "b" }), DONE],
  });
  const place = createPlace(model.url);
  const first = place.start([...TOOLS, "--wait"]);
  await first.said(/waiting for an answer/);
  first.signal("SIGINT");
  const ended = await first.ended;
  expect(ended).toMatchObject({ code: 130 });
  const requestId = "work#1/a1/t1.c0";
  expect(reportOf(ended)).toMatchObject({ suspended: { requests: [{ requestId, kind: "grantStageTool" }] } });
  const { runId } = await onlyRun(place);
  expect(await onlyRun(place)).toMatchObject({ status: "suspended", suspended: "waiting" });
  expect(await place.run(["answer", runId, requestId, "deny", "--resume"])).toMatchObject({ code: 0 });
  expect(turnsOf(model, place)).toEqual(["submit_work 0", "submit_work 1"]);
});

/** A run that was killed while both its siblings asked their models. */
async function killedInFork(model: LoopbackModel): Promise<{ place: Place; runId: string }> {
  const place = createPlace(model.url);
  const held = ["submit_lint", "submit_test"].map((stage) => model.hold(place.key, stage, 0));
  const first = place.start(["run", `${pipelineFile("pipelines.ts")}#fan`, "go"]);
  await Promise.all(held.map(({ reached }) => reached));
  await first.kill();
  return { place, runId: (await onlyRun(place)).runId };
}

const FAN: Turns = {
  submit_begin: [says("b", "submit_begin", { said: "go" })],
  submit_lint: [says("l", "submit_lint", { said: "clean" })],
  submit_test: [says("t", "submit_test", { said: "pass" })],
};

async function expectCancelled(place: Place, runId: string): Promise<void> {
  const journals = await place.look((host) => host.journal(runId));
  expect(journals.map(({ runId: of, end }) => [of, end?.status])).toEqual([
    [runId, "cancelled"],
    [`${runId}/fan-1/lint`, "cancelled"],
    [`${runId}/fan-1/test`, "cancelled"],
  ]);
  expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
  const shown = reportOf(await place.run(["show", runId, "--output-format", "json"]));
  expect(shown).toMatchObject({ status: "cancelled", error: { message: expect.stringContaining("wrong branch") } });
}

test("a killed run is cancelled with its children by another process, which asks no model and runs none of its code", async () => {
  await using model = await startLoopbackModel(FAN);
  const { place, runId } = await killedInFork(model);
  const before = turnsOf(model, place);
  expect(await place.run(["cancel", runId, "--reason", "wrong branch"])).toMatchObject({
    code: 0,
    stdout: `run ${runId} is cancelled\n`,
  });
  await expectCancelled(place, runId);

  const resumed = await place.run(["resume", runId, "--output-format", "json"]);
  expect(resumed).toMatchObject({ code: 1 });
  expect(reportOf(resumed)).toMatchObject({ runId, status: "cancelled", error: { message: "wrong branch" } });
  expect(await place.run(["cancel", runId])).toMatchObject({ code: 1 });
  expect(turnsOf(model, place)).toEqual(before);
});

test("cancelling a killed run ends the command that it left at work", async () => {
  await using model = await startLoopbackModel(bash("echo $$ > pid.txt; sleep 600; echo late > late.txt"));
  const place = createPlace(model.url);
  const first = place.start(TOOLS);
  const pid = Number(await written(place, "pid.txt"));
  await first.kill();
  expect(isAlive(pid)).toBe(true);
  const { runId } = await onlyRun(place);
  expect(await place.run(["cancel", runId])).toMatchObject({ code: 0 });
  expect(isAlive(pid)).toBe(false);
  expect(textOf(place, "late.txt")).toBeUndefined();
  expect(textOf(place, "hooks.log")).toBeUndefined();
});

test.each([
  { dieAt: "before:2", where: "before it has the run", by: "cancel", code: 0 },
  { dieAt: "before:5", where: "between two children", by: "resume", code: 1 },
  { dieAt: "before:6", where: "before the run's own end", by: "cancel", code: 0 },
])("a cancel whose process died $where is carried out by the next $by", async ({ dieAt, by, code }) => {
  await using model = await startLoopbackModel(FAN);
  const { place, runId } = await killedInFork(model);
  const before = turnsOf(model, place);
  const reason = ["--reason", "wrong branch"];
  expect(await place.run(["cancel", runId, ...reason], { dieAt })).toMatchObject({ signal: "SIGKILL" });
  expect(await onlyRun(place)).toMatchObject({ status: "suspended" });
  const again = await place.run(by === "cancel" ? ["cancel", runId, ...reason] : ["resume", runId]);
  expect(again, again.stderr).toMatchObject({ code });
  await expectCancelled(place, runId);
  expect(turnsOf(model, place)).toEqual(before);
});

test("a running run, even in a process that was stopped, is not resumed by another: it says which one has it", async () => {
  await using model = await startLoopbackModel({ submit_work: [DONE] });
  const place = createPlace(model.url);
  const held = model.hold(place.key, "submit_work", 0);
  const first = place.start(TOOLS);
  await held.reached;
  const { runId } = await onlyRun(place);
  first.signal("SIGSTOP");
  const second = await place.run(["resume", runId, "--output-format", "json"]);
  expect(second).toMatchObject({ code: 4 });
  expect(reportOf(second)).toMatchObject({
    runId: null,
    error: { code: "run_owned", message: expect.stringContaining(`process ${first.pid}`) },
  });
  first.signal("SIGCONT");
  held.release();
  expect(await first.ended).toMatchObject({ code: 0 });
  expect(turnsOf(model, place)).toEqual(["submit_work 0"]);
});

test("of two processes that resume a killed run one continues it, and the other says so", async () => {
  await using model = await startLoopbackModel({ submit_work: [DONE] });
  const place = createPlace(model.url);
  await killedIn(model, place);
  const { runId } = await onlyRun(place);
  const held = model.hold(place.key, "submit_work", 0);
  const both = [0, 1].map(() => place.start(["resume", runId, "--output-format", "json"]));
  await held.reached;
  const loser = await Promise.race(both.map(({ ended }) => ended));
  expect(loser).toMatchObject({ code: 4 });
  expect(reportOf(loser)).toMatchObject({ error: { code: "run_owned" } });
  held.release();
  const codes = (await Promise.all(both.map(({ ended }) => ended))).map(({ code }) => code);
  expect(codes.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual([0, 4]);
  expect(turnsOf(model, place)).toEqual(["submit_work 0", "submit_work 0"]);
  expect(textOf(place, "hooks.log")).toBe("exit completed\nnext\n");
});

test("an unknown run is not resumed, and the closest one is suggested", async () => {
  await using model = await startLoopbackModel({ submit_work: [DONE] });
  const place = createPlace(model.url);
  await killedIn(model, place);
  const { runId } = await onlyRun(place);
  const unknown = await place.run(["resume", `${runId.slice(0, -1)}_`, "--output-format", "json"]);
  expect(unknown).toMatchObject({ code: 4 });
  expect(reportOf(unknown)).toMatchObject({
    runId: null,
    error: { code: "run_unknown", message: expect.stringContaining(`Did you mean ${runId}?`) },
  });
});

async function killedIn(model: LoopbackModel, place: Place): Promise<void> {
  const held = model.hold(place.key, "submit_work", 0);
  const first = place.start(TOOLS);
  await held.reached;
  await first.kill();
}
