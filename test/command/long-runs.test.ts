import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { expect, test, vi } from "vitest";
import { createPlace, type Place, pipelineFile } from "../support/command-process.ts";
import { startLoopbackModel } from "../support/loopback-model.ts";

// Runs that sleep and wait, with real processes, kills and clocks.

const choose = (choice: JsonObject) => ({ calls: [{ id: "c0", name: "choose", input: { choice } }] });
const RUN = ["run", `${pipelineFile("release.ts")}#release`, "seven", "--sandbox", "off", "--answers", "any"];

function logOf(place: Place): readonly string[] {
  return readFileSync(join(place.workspace, "done.log"), "utf8").trim().split("\n");
}

/** Waits until a run is due. */
async function due(place: Place): Promise<void> {
  await vi.waitFor(
    async () => {
      const { runs } = await place.look((host) => host.due(1));
      if (runs.length === 0) throw new Error("no run is due");
    },
    { timeout: 60_000, interval: 50 },
  );
}

test("a run is killed in every sleep and while it waits, is woken and answered by other processes, and repeats nothing", async () => {
  await using model = await startLoopbackModel({ choose: [choose({ to: "announce", reason: "it is out" })] });
  const place = createPlace(model.url);
  const first = place.start([...RUN, "--wait", "--output-format", "stream-json"]);
  await first.event(({ type }) => type === "sleep.started");
  await first.kill();
  const [run] = await place.look((host) => host.list());
  const runId = run?.runId ?? expect.fail("there is no run");
  expect(run).toMatchObject({ status: "suspended", suspended: "sleeping" });

  // Two more sleeps of the poll, the timer, and the question.
  const seen = new Set<unknown>();
  for (const what of ["sleep.started", "sleep.started", "sleep.started", "request.opened"]) {
    const next = place.start(["resume", runId, "--wait", "--output-format", "stream-json"]);
    const event = await next.event(({ type, id }) => type === what && !seen.has(id));
    seen.add(event.id);
    await next.kill();
  }
  expect(logOf(place)).toEqual(["build", "poll", "poll", "poll", "poll"]);

  const [request] = await place.look((host) => host.requests(runId));
  const answer = ["answer", runId, request?.requestId ?? "", "--value"];
  expect(await place.run([...answer, "yes"])).toMatchObject({ code: 2, stderr: expect.stringContaining("object") });
  expect(await place.run([...answer, '{"approved":true}'])).toMatchObject({ code: 0 });

  // The answer makes it due. A wake may stay for a short sleep, or leave it to the next.
  for (let woken = ""; !woken.includes("completed"); ) {
    await due(place);
    const ended = await place.run(["wake"]);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining(runId) });
    woken = ended.stdout;
  }
  expect(await place.run(["wake"])).toMatchObject({ code: 0, stdout: "no run is due\n" });

  expect(await place.look((host) => host.get(runId))).toMatchObject({
    status: "completed",
    end: { value: { output: { published: 7 } } },
  });
  expect(logOf(place)).toEqual(["build", "poll", "poll", "poll", "poll", "upload", "announce"]);
  expect(model.asked(place.key).map(({ stage, turn }) => `${stage} ${turn}`)).toEqual(["choose 0"]);
  expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
});

test.each([6, 18])("a run whose process dies after its %d. commit is woken, and repeats nothing", async (commit) => {
  await using model = await startLoopbackModel({ choose: [choose({ to: "announce" })] });
  const place = createPlace(model.url);
  const killed = await place.run([...RUN, "--wait"], { dieAt: `after:${commit}` });
  expect(killed.signal).toBe("SIGKILL");
  const [run] = await place.look((host) => host.list());
  const runId = run?.runId ?? expect.fail("there is no run");
  // A process that died before the run has ever slept is resumed by a person.
  if ((await place.look((host) => host.due(1))).runs.length === 0) {
    const resumed = place.start(["resume", runId, "--wait", "--output-format", "stream-json"]);
    await resumed.event(({ type }) => type === "sleep.started");
    await resumed.kill();
  }
  for (let status: string | undefined; status !== "completed"; ) {
    const [request] = await place.look((host) => host.requests(runId));
    if (request !== undefined) await place.run(["answer", runId, request.requestId, "--value", '{"approved":true}']);
    await due(place);
    expect(await place.run(["wake"])).toMatchObject({ code: 0 });
    status = (await place.look((host) => host.get(runId)))?.status;
  }
  expect(logOf(place)).toEqual(["build", "poll", "poll", "poll", "poll", "upload", "announce"]);
  expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
});

function runOf(pipeline: string, ...flags: readonly string[]): readonly string[] {
  return ["run", `${pipelineFile("release.ts")}#${pipeline}`, "Now", "--answers", "any", ...flags];
}
/** Starts a run, and kills its process when it has asked. */
async function killedAsking(
  place: Place,
  pipeline: string,
): Promise<{ readonly runId: string; readonly requestId: string }> {
  const first = place.start(runOf(pipeline, "--wait", "--output-format", "stream-json"));
  await first.event(({ type }) => type === "request.opened");
  await first.kill();
  const [request] = await place.look((host) => host.requests());
  return request ?? expect.fail("there is no request");
}

test("a question takes a text from sluice answer, and JSON is text where that fits", async () => {
  const place = createPlace("http://127.0.0.1:9");
  const { runId, requestId } = await killedAsking(place, "asking");
  const shown = await place.run(["show", runId]);
  expect(shown.stdout).toContain("Now?");
  expect(await place.run(["answer", runId, requestId, "--value", "123"])).toMatchObject({ code: 0 });
  expect(await place.run(["wake"])).toMatchObject({ code: 0 });
  expect(await place.look((host) => host.get(runId))).toMatchObject({ end: { value: { output: "123" } } });
});

test("after the deadline of a question, an answer is refused, and a wake continues the run without one", async () => {
  const place = createPlace("http://127.0.0.1:9");
  const { runId, requestId } = await killedAsking(place, "hurried");
  await due(place);
  const late = await place.run(["answer", runId, requestId, "--value", "yes"]);
  expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining("the deadline") });
  expect(await place.run(["wake"])).toMatchObject({ code: 0 });
  expect(await place.look((host) => host.get(runId))).toMatchObject({
    end: { value: { output: { cause: "timeout" } } },
  });
});

test("without anyone to answer, a question fails at once, and a route can lead on", async () => {
  const place = createPlace("http://127.0.0.1:9");
  const ended = await place.run(runOf("hurried", "--headless", "--output-format", "json"));
  expect(ended).toMatchObject({ code: 0 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ output: { cause: "no_interactor" } });
});
