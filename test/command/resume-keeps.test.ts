import { expect, test } from "vitest";
import { at, call, desk, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

const JSON_OUT = ["--output-format", "json"];
const writes = call("Write", { file_path: "one.txt", content: "x" });

/** A run that waits for an approval and is suspended after a moment without one. */
async function suspended(here: DeskHere, flags: readonly string[]): Promise<string> {
  const model = here.script({ work: [turn(writes), finishes()] });
  const args = ["run", `${PIPELINES}#single`, "x", "--model", model, "--wait=1ms", ...flags, ...JSON_OUT];
  const ended = await here.sluice(args);
  expect([ended.code, printed(ended)]).toMatchObject([3, { status: "suspended", suspended: { reason: "waiting" } }]);
  return textAt(printed(ended), "runId");
}

test("a resume without flags keeps --wait, so that what waits is not denied", async () => {
  const here = deskHere();
  const runId = await suspended(here, []);
  const resumed = await here.sluice(["resume", runId, "--trust", ...JSON_OUT]);
  expect([resumed.code, printed(resumed)]).toMatchObject([3, { status: "suspended", denied: [] }]);
  const line = textAt(at(printed(resumed), "suspended") ?? null, "resume");
  expect(line).toMatch(new RegExp(`resume ${runId} --wait`));
  const denied = await here.sluice(["resume", runId, "--trust", "--no-wait", ...JSON_OUT]);
  expect([denied.code, printed(denied)]).toMatchObject([0, { status: "completed", denied: [{ tool: "Write" }] }]);
});

test("a resume keeps --fail-on-denied, and so does printing the result of the finished run", async () => {
  const here = deskHere();
  const runId = await suspended(here, ["--fail-on-denied", "--max-parallel", "2"]);
  const audited = await here.sluice(["audit", runId, "--json"]);
  expect(at(printed(audited), "events", 0, "data", "settings")).toEqual({ maxParallel: 2, failOnDenied: true });
  const ended = await here.sluice(["resume", runId, "--trust", "--no-wait", ...JSON_OUT]);
  expect([ended.code, printed(ended)]).toMatchObject([5, { status: "completed", denied: [{ tool: "Write" }] }]);
  const again = await here.sluice(["resume", runId, ...JSON_OUT]);
  expect([again.code, printed(again)]).toEqual([5, printed(ended)]);
  expect((await here.sluice(["resume", runId, "--no-fail-on-denied", ...JSON_OUT])).code).toBe(0);
  const text = await here.sluice(["resume", runId]);
  expect([text.code, text.stdout]).toEqual([5, expect.stringContaining(`completed ${runId}`)]);
  const streamed = await here.sluice(["resume", runId, "--output-format", "stream-json"]);
  expect([streamed.code, printed(streamed)]).toMatchObject([5, printed(ended)]);
});

test("a fork is a new run and keeps none of these flags", async () => {
  const here = deskHere();
  const runId = await suspended(here, ["--fail-on-denied"]);
  const forked = await here.sluice(["fork", runId, "--from", "work#1", "--trust", ...JSON_OUT]);
  expect([forked.code, printed(forked)]).toMatchObject([0, { status: "completed", denied: [{ tool: "Write" }] }]);
});

test("the result of a failed and of a cancelled run is printed again, with exit code 1", async () => {
  const here = deskHere();
  const model = here.script({ work: [{ text: "no" }, { text: "no" }] });
  const failed = await here.sluice(["run", `${PIPELINES}#single`, "x", "--model", model, ...JSON_OUT]);
  expect(failed.code).toBe(1);
  const again = await here.sluice(["resume", textAt(printed(failed), "runId"), ...JSON_OUT]);
  expect([again.code, printed(again)]).toEqual([1, printed(failed)]);

  const runId = await suspended(here, []);
  await here.sluice(["cancel", runId, "--reason", "enough"]);
  const cancelled = await here.sluice(["resume", runId, ...JSON_OUT]);
  expect([cancelled.code, printed(cancelled)]).toMatchObject([
    1,
    { runId, status: "cancelled", error: { message: "enough" } },
  ]);
  const text = await here.sluice(["resume", runId]);
  expect([text.code, text.stdout]).toEqual([1, expect.stringContaining(`cancelled ${runId}`)]);
});

const NAP = `
  import { done, pipeline } from "@sluice/core";
  import { timer } from "@sluice/stages";
  import { z } from "zod";
  export const nap = pipeline({
    id: "nap",
    input: z.object({ task: z.string() }),
    stages: { sleep: timer({ for: "1h" }) },
    initial: "sleep",
    next: { sleep: () => done("awake") },
  });`;

test("a run that is left asleep keeps --suspend-sleeps, and its line says how to wait for it", async () => {
  const here = deskHere();
  const file = here.write("nap.ts", NAP);
  const slept = await here.sluice(["run", `${file}#nap`, "x", "--suspend-sleeps", ...JSON_OUT]);
  const runId = textAt(printed(slept), "runId");
  expect([slept.code, slept.stderr]).toEqual([3, expect.stringContaining(`resume ${runId} --no-suspend-sleeps`)]);
  const shown = await here.sluice(["show", runId]);
  expect(shown.stdout).toContain(`resume ${runId} --no-suspend-sleeps`);
  const resumed = await here.sluice(["resume", runId, "--trust", ...JSON_OUT]);
  expect([resumed.code, printed(resumed)]).toMatchObject([3, { suspended: { reason: "sleeping" } }]);
});

test("a killed run shows since when nothing is known, and its stages count no time after that", async () => {
  const here = desk();
  const model = here.script({ work: [{ delayMs: 60_000, ...finishes() }] });
  const running = here.start(["run", `${PIPELINES}#single`, "x", "--model", model, "--output-format", "stream-json"]);
  const [, runId = ""] = await running.said("stdout", /"runId":"(\w+)"[\s\S]*turn\.started/);
  running.child.kill("SIGKILL");
  await running.ended;
  const shown = printed(await here.sluice(["show", runId, ...JSON_OUT]));
  expect(shown).toMatchObject({ status: "suspended", idle: { suspendedMs: 0, unknownMs: 0 } });
  expect(typeof at(shown, "idle", "unknownSince")).toBe("number");
  const page = await here.sluice(["report", runId, "-o", "-"]);
  expect(page.stdout).toContain("the process ended without a record");
  expect((await here.sluice(["show", runId])).stdout).toMatch(/unknown since .*: the process ended without a record/);
});
