import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Json } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { expect, test, vi } from "vitest";
import { createPlace, type Place, pipelineFile, reportOf } from "../support/command-process.ts";
import {
  type Asked,
  type LoopbackModel,
  lastResults,
  startLoopbackModel,
  type Turns,
} from "../support/loopback-model.ts";
import { isAlive } from "../support/survivors.ts";

// Each test starts several processes, on machines that may do much else.

const says = (id: string, name: string, input: Json) => ({ calls: [{ id, name, input }] });
const CODE_REVIEW: Turns = {
  submit_plan: [
    says("p0", "Grep", { pattern: "hello" }),
    says("p1", "submit_plan", { summary: "Wave.", steps: ["Write it."], files: ["wave.txt"], risks: [] }),
  ],
  submit_diff: [
    says("e0", "Write", { file_path: "wave.txt", content: "bye\n" }),
    says("e1", "submit_diff", {
      summary: "Waved.",
      changes: [{ file: "wave.txt", change: "New." }],
      deviations: [],
    }),
  ],
  submit_review: [says("r0", "submit_review", { verdict: "approve", summary: "Fine.", findings: [] })],
};
const REVIEWED = {
  status: "completed",
  output: { verdict: "approve", summary: "Fine.", changes: [{ file: "wave.txt" }], plan: "Wave." },
  stages: [
    { executionId: "plan#1", turns: 2, usage: { inputTokens: 20, outputTokens: 40 } },
    { executionId: "execute#1", turns: 2, usage: { inputTokens: 20, outputTokens: 40 } },
    { executionId: "review#1", turns: 1, usage: { inputTokens: 10, outputTokens: 20 } },
  ],
  usage: { inputTokens: 50, outputTokens: 100 },
};
const REVIEW = ["run", "codeReview", "wave", "--output-format", "json"];
const TOOLS = [
  "run",
  `${pipelineFile("pipelines.ts")}#tools`,
  "work",
  "--output-format",
  "stream-json",
  "--sandbox",
  "off",
];

function toolsTurns(...turns: readonly Readonly<Record<string, Json>>[]): Turns {
  const calls = turns.map(({ tool, ...input }, at) => says(`w${at}`, String(tool), input));
  return { submit_work: [...calls, says("end", "submit_work", { said: "done" })] };
}

function namesOf(asked: readonly Asked[]): readonly string[] {
  return asked.map(({ stage, turn }) => `${stage} ${turn}`);
}

function textOf(place: Place, name: string): string | undefined {
  const path = join(place.workspace, name);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

async function onlyRun(place: Place) {
  const [run] = await place.look((host) => host.list());
  if (run === undefined) throw new Error("there is no run");
  return run;
}

async function expectVerified(place: Place): Promise<void> {
  const { runId } = await onlyRun(place);
  expect(verifyJournal(await place.look((host) => host.journal(runId))).faults).toEqual([]);
}

test("a run killed in the middle of an answer makes that call again and no other, from any folder", async () => {
  await using model = await startLoopbackModel(CODE_REVIEW);
  const place = createPlace(model.url);
  const held = model.hold(place.key, "submit_diff", 0, 4);
  const first = place.start(REVIEW);
  await held.reached;
  await first.kill();

  const run = await onlyRun(place);
  expect(run).toMatchObject({ status: "suspended", suspended: "interrupted" });
  // From another folder and with no settings but the store: the run brings the rest along.
  const elsewhere = { cwd: dirname(place.workspace), env: { SLUICE_MODEL: "" } };
  const resumed = await place.run(["resume", run.runId, "--store", place.store, "--output-format", "json"], elsewhere);
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(reportOf(resumed)).toMatchObject(REVIEWED);
  const names = ["plan 0", "plan 1", "diff 0", "diff 0", "diff 1", "review 0"].map((name) => `submit_${name}`);
  expect(namesOf(model.asked(place.key))).toEqual(names);
  expect(textOf(place, "wave.txt")).toBe("bye\n");
  expect(await place.run(["audit", run.runId, "--verify"])).toMatchObject({ code: 0 });
});

test("a run continues with what its script says now, and with what it said before", async () => {
  const place = createPlace("http://127.0.0.1:9");
  const script = join(place.workspace, "script.json");
  const turn = (tool: string, input: Json, more: Readonly<Record<string, Json>> = {}) => ({
    calls: [{ tool, input }],
    ...more,
  });
  const plan = (summary: string) => turn("submit_plan", { summary, steps: ["Write it."], files: [], risks: [] });
  const diff = (summary: string) => turn("submit_diff", { summary, changes: [], deviations: [] });
  const review = turn("submit_review", { verdict: "approve", summary: "Fine.", findings: [] });
  const write = (content: string) => turn("Write", { file_path: "wave.txt", content });
  const put = (first: string, execute: Json, then: string): void =>
    writeFileSync(
      script,
      JSON.stringify({ stages: { plan: [plan(first)], execute: [execute, diff(then)], review: [review] } }),
    );
  put("the first plan", { ...write("first\n"), delayMs: 600_000 }, "the first diff");
  const running = place.start([
    "run",
    "codeReview",
    "wave",
    "--model",
    "scripted:script.json",
    "--output-format",
    "stream-json",
  ]);
  await running.event(({ type, executionId }) => type === "turn.started" && executionId === "execute#1");
  await running.kill();

  put("the second plan", write("second\n"), "the second diff");
  const { runId } = await onlyRun(place);
  const resumed = await place.run(["resume", runId, "--output-format", "json"]);
  expect(reportOf(resumed)).toMatchObject({
    status: "completed",
    output: { plan: "the first plan" },
    stages: [{ turns: 1 }, { turns: 2, output: { summary: "the second diff" } }, { turns: 1 }],
  });
  expect(textOf(place, "wave.txt")).toBe("second\n");
  await expectVerified(place);
});

test("a command that was running is not run again: its processes are ended, and then the model is notified", async () => {
  // It lives on when its pipe breaks, and when it is asked to end.
  const command = "trap '' TERM PIPE; echo ran >> log.txt; echo $$ > pid.txt; while :; do sleep 0.1; done";
  await using model = await startLoopbackModel(toolsTurns({ tool: "Bash", command }));
  const place = createPlace(model.url);
  const first = place.start(TOOLS);
  const pid = await vi.waitFor(() => Number(textOf(place, "pid.txt")?.match(/^\d+\n/)?.[0] ?? fail()), 60_000);
  await first.kill();
  expect(isAlive(pid)).toBe(true);

  const aliveThen: boolean[] = [];
  model.onAsked(() => aliveThen.push(isAlive(pid)));
  const { runId } = await onlyRun(place);
  const resumed = await place.run(["resume", runId, "--output-format", "json"]);
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(aliveThen).toEqual([false]);
  const asked = model.asked(place.key);
  expect(namesOf(asked)).toEqual(["submit_work 0", "submit_work 1"]);
  expect(asked.flatMap(lastResults)).toEqual([expect.stringContaining('"outcome_unknown"')]);
  expect(textOf(place, "log.txt")).toBe("ran\n");
  expect(textOf(place, "hooks.log")).toBe("exit completed\nnext\n");
  await expectVerified(place);
});

/** A run of codeReview whose plan asks for a command outside its envelope, killed while it waits for the answer. */
async function killedWaiting(model: LoopbackModel): Promise<{ place: Place; runId: string; requestId: string }> {
  const place = createPlace(model.url);
  const first = place.start(["run", "codeReview", "wave", "--wait", "--output-format", "stream-json"]);
  const { data } = await first.event(({ type }) => type === "grant.requested");
  await first.said(/waiting for an answer: sluice answer/);
  await first.kill();
  const run = await onlyRun(place);
  expect(run).toMatchObject({ status: "suspended", suspended: "waiting" });
  const [request, ...more] = await place.look((host) => host.requests(run.runId));
  expect(more).toEqual([]);
  expect(data).toMatchObject({ requestId: request?.requestId });
  return { place, runId: run.runId, requestId: request?.requestId ?? "" };
}

const ASKING: Turns = {
  ...CODE_REVIEW,
  submit_plan: [
    says("p0", "Bash", { command: "echo granted >> granted.log" }),
    ...(CODE_REVIEW.submit_plan?.slice(1) ?? []),
  ],
};

async function requestsIn(place: Place, runId: string): Promise<number> {
  let count = 0;
  await place.look(async (host) => {
    for await (const { type } of host.events(runId)) if (type === "grant.requested") count += 1;
  });
  return count;
}

test("a request answered while no one works on the run is not asked again", async () => {
  await using model = await startLoopbackModel(ASKING);
  const { place, runId, requestId } = await killedWaiting(model);
  const answered = await place.run(["answer", runId, requestId, "approve"]);
  expect(answered).toMatchObject({ code: 0, stdout: expect.stringMatching(/resume it with: sluice resume/) });
  expect(await place.look((host) => host.requests(runId))).toEqual([]);
  expect(await onlyRun(place)).toMatchObject({ status: "suspended", suspended: "interrupted" });
  expect(textOf(place, "granted.log")).toBeUndefined();

  // Killed once more when the answer is in use, and resumed without --wait: the answer stands.
  const held = model.hold(place.key, "submit_plan", 1);
  const second = place.start(["resume", runId]);
  expect(lastResults(await held.reached)).toEqual([expect.stringContaining("(no output)")]);
  await second.kill();
  expect(await place.run(["resume", runId, "--output-format", "json"])).toMatchObject({ code: 0 });
  expect(textOf(place, "granted.log")).toBe("granted\n");
  expect(await requestsIn(place, runId)).toBe(1);
  await expectVerified(place);
});

test("a request that was open when its run was killed is open again, and is answered while the run waits", async () => {
  await using model = await startLoopbackModel(ASKING);
  const { place, runId, requestId } = await killedWaiting(model);
  const second = place.start(["resume", runId, "--wait", "--output-format", "json"]);
  await second.said(/waiting for an answer: sluice answer/);
  const shown = await place.run(["show", runId, "--output-format", "json"]);
  expect(reportOf(shown)).toMatchObject({ requests: [{ requestId }] });
  expect(await place.run(["answer", runId, requestId, "approve"])).toMatchObject({ code: 0 });
  expect(await second.ended).toMatchObject({ code: 0 });
  expect(textOf(place, "granted.log")).toBe("granted\n");
  expect(await requestsIn(place, runId)).toBe(1);
  await expectVerified(place);
});

test("a request that was open when its run was killed is denied when the run continues with --no-wait and no one there", async () => {
  await using model = await startLoopbackModel(ASKING);
  const { place, runId } = await killedWaiting(model);
  const resumed = await place.run(["resume", runId, "--no-wait", "--output-format", "json"]);
  expect(resumed).toMatchObject({ code: 0 });
  expect(reportOf(resumed)).toMatchObject({ status: "completed", denied: [{ tool: "Bash", cause: "no_interactor" }] });
  expect(textOf(place, "granted.log")).toBeUndefined();
  expect(await requestsIn(place, runId)).toBe(1);
});

function fail(): never {
  throw new Error("not yet");
}
