import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, desk, finishes, lines, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { deskHere, sluiceHere } from "../support/command-here.ts";

const JSON_OUT = ["--output-format", "json"];
const slow = { delayMs: 60_000, ...finishes("never") };

test("sluice run --from starts in that state, says so, and refuses what cannot start there", async () => {
  const here = deskHere();
  const model = here.script({ second: [finishes("end")] });
  const writing = ["run", `${PIPELINES}#writing`, "x", "--model", model, ...JSON_OUT];
  const ran = await here.sluice([...writing, "--from", "second", "--input", '{"why":"a=b"}']);
  expect([ran.code, printed(ran)]).toMatchObject([0, { status: "completed", stages: [{ executionId: "second#1" }] }]);
  const runId = textAt(printed(ran), "runId");
  const shown = await here.sluice(["show", runId.slice(0, 6), ...JSON_OUT]);
  expect(printed(shown)).toMatchObject({ runId, task: "x", from: { state: "second", input: { why: "a=b" } } });
  expect((await here.sluice(["show", runId])).stdout).toContain("started in state second");
  const report = await here.sluice(["report", runId, "-o", "-"]);
  expect(report.stdout).toContain("started in state second");

  const unknown = await here.sluice([...writing, "--from", "secnd"]);
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean "second"?')]);
  const idle = await here.sluice([...writing, "--run-input", "mood=calm"]);
  expect([idle.code, idle.stderr]).toEqual([2, expect.stringContaining("--run-input needs --from")]);
});

test("sluice interrupt stops what another process does, and sluice resume enters the state again", async () => {
  const here = desk();
  const model = here.script({ first: [slow], second: [finishes("end")] });
  const running = here.start(["run", `${PIPELINES}#writing`, "x", "--model", model, "--output-format", "stream-json"]);
  const [, runId = ""] = await running.said("stdout", /"runId":"(\w+)"[\s\S]*turn\.started/);
  const sluice = sluiceHere(here.folder);
  const asked = await sluice(["interrupt", runId.slice(0, 7), "--reason", "the wrong file", ...JSON_OUT]);
  expect([asked.code, printed(asked)]).toMatchObject([0, { runId, status: "suspended", interrupted: true }]);
  const ended = await running.ended;
  expect(ended.code).toBe(3);
  expect(lines(ended).filter(({ type }) => type === "execution.interrupted")).toMatchObject([
    { executionId: "first#1", data: { reason: "the wrong file" } },
  ]);
  const again = await sluice(["interrupt", runId]);
  expect([again.code, again.stderr]).toEqual([4, expect.stringContaining("there is nothing to interrupt")]);

  const calm = here.script({ first: [finishes("1"), finishes("2")], second: [finishes("end")] });
  const resumed = await sluice(["resume", runId, "--trust", "--model", calm, ...JSON_OUT]);
  expect([resumed.code, printed(resumed)]).toMatchObject([
    0,
    {
      status: "completed",
      stages: [
        { executionId: "first#1", status: "cancelled" },
        { executionId: "first#2", status: "completed" },
        { executionId: "second#1" },
      ],
    },
  ]);
});

test("sluice message reaches a suspended run, at once or in its next state", async () => {
  const here = deskHere();
  const writes = call("Write", { file_path: "one.txt", content: "x" });
  const script = { work: [turn(writes), finishes()] };
  const args = ["run", `${PIPELINES}#single`, "x", "--model", here.script(script), "--wait=1ms", ...JSON_OUT];
  const runId = textAt(printed(await here.sluice(args)), "runId");
  const sent = await here.sluice(["message", runId, "mind", "the tabs"]);
  expect([sent.code, sent.stdout]).toEqual([
    0,
    "sent; an agent reads it before its next turn, once the run continues\n",
  ]);
  const later = await here.sluice(["message", runId.slice(0, 6), "--follow-up", "and the docs", ...JSON_OUT]);
  expect(printed(later)).toEqual({ runId, kind: "followUp", status: "suspended" });
  const resumed = await here.sluice(["resume", runId, "--no-wait", "--output-format", "stream-json"]);
  const read = lines(resumed).filter(({ type }) => type === "message.received");
  expect(read).toMatchObject([{ data: { text: "mind the tabs" } }]);
});

test("sluice resume keeps --wait as the run was started with, and --no-wait denies what waits", async () => {
  const here = deskHere();
  const writes = call("Write", { file_path: "one.txt", content: "x" });
  const model = here.script({ work: [turn(writes), finishes()] });
  const args = ["run", `${PIPELINES}#single`, "x", "--model", model, "--wait=1ms", ...JSON_OUT];
  const runId = textAt(printed(await here.sluice(args)), "runId");
  const kept = await here.sluice(["resume", runId, ...JSON_OUT]);
  expect([kept.code, printed(kept)]).toMatchObject([3, { suspended: { reason: "waiting", requests: [{}] } }]);
  const denied = await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT]);
  expect([denied.code, printed(denied)]).toMatchObject([0, { denied: [{ cause: "no_interactor" }] }]);
  expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
});
