import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Desk, desk, printed } from "../support/command.ts";

const OUTSIDE = join(import.meta.dirname, "../fixtures/command/outside.ts#outside");

const read = { call: "Read", input: { file_path: "in.txt" } };
const ends = { call: "finish", input: { text: "looked" } };

/** A workspace with the plan of the agent. */
function deskWith(plan: readonly (readonly object[])[]): Desk {
  const here = desk();
  here.write("in.txt", "read me\n");
  here.write("plan.json", JSON.stringify(plan));
  return here;
}

test("sluice run executes a stage of an agent over ACP, and its run is shown, verified and replayed as any", async () => {
  const here = deskWith([[{ say: "I look." }, read, ends]]);
  const ran = await here.sluice(["run", OUTSIDE, "look", "--sandbox", "off", "--output-format", "json"]);
  const { runId, status, output } = printed(ran);
  expect([ran.code, status, output]).toEqual([0, "completed", "looked"]);
  const id = String(runId);
  expect((await here.sluice(["audit", id, "--verify"])).code).toBe(0);
  expect((await here.sluice(["replay", id])).code).toBe(0);
  expect((await here.sluice(["show", id])).stdout).toContain("agent:");
});

test("a run that is killed while its agent works continues with a new process, which reads what was done", async () => {
  const here = deskWith([[read, { hang: true }]]);
  const running = here.start(["run", OUTSIDE, "look", "--sandbox", "off", "--output-format", "stream-json"]);
  const [, runId = ""] = await running.said("stdout", /"runId":"(r\w+)"/);
  await running.said("stdout", /"type":"call.finished"/);
  running.child.kill("SIGKILL");
  await running.ended;

  here.write("plan.json", JSON.stringify([[ends]]));
  const resumed = await here.sluice(["resume", runId, "--output-format", "json"]);
  expect([resumed.code, resumed.stderr, printed(resumed).output]).toEqual([0, "", "looked"]);
  const log = readFileSync(join(here.folder, "agent.log"), "utf8");
  expect(log).toContain("What you did in this stage so far");
  expect(log.match(/"call":"Read"/g)).toHaveLength(1);
});

test("a cassette of an agent's work plays without the agent", async () => {
  const here = deskWith([[read, ends]]);
  const recorded = await here.sluice([
    "run",
    OUTSIDE,
    "look",
    "--sandbox",
    "off",
    "--record",
    "../agent.jsonl",
    "--output-format",
    "json",
  ]);
  expect(printed(recorded).output).toBe("looked");
  here.write("plan.json", "this would fail");
  const played = await here.sluice(["run", OUTSIDE, "look", "--sandbox", "off", "--model", "cassette:../agent.jsonl"]);
  expect([played.code, played.stderr]).toEqual([0, ""]);
});
