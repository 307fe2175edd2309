import { expect, test } from "vitest";
import { at, call, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

// `sluice run auto`: a model writes a pipeline, a person in another process lets it run.

const JSON_OUT = ["--output-format", "json"];
const document = {
  id: "note",
  initial: "work",
  states: {
    work: { allowed_tools: ["Write"], instructions: "Write a note.", on: { DONE: "done" } },
    done: { type: "final" },
  },
};
const turns = {
  design: [turn(call("create_pipeline", { document }))],
  work: [
    turn(call("Write", { file_path: "note.md", content: "A note.\n" })),
    turn(call("transition", { event: "DONE" })),
  ],
};

/** Runs it until a person has to decide. */
async function untilAsked(here: DeskHere): Promise<{ readonly runId: string; readonly requestId: string }> {
  const flags = ["--model", here.script(turns), "--wait=1ms", "--answers=any", ...JSON_OUT];
  const ended = await here.sluice(["run", "auto", "Write a note", ...flags]);
  const result = printed(ended);
  expect([ended.code, at(result, "suspended", "requests", 0, "body")]).toMatchObject([
    3,
    { question: expect.stringContaining('Tools without asking: "Write"\nCommands: none\n') },
  ]);
  return { runId: textAt(result, "runId"), requestId: textAt(result, "suspended", "requests", 0, "requestId") };
}

test("a written pipeline runs once a person has approved it, and its run can be checked and replayed", async () => {
  const here = deskHere();
  const { runId, requestId } = await untilAsked(here);
  const ended = await here.sluice(["answer", runId, requestId, "--value", '"run"', "--resume", ...JSON_OUT]);
  expect([ended.code, printed(ended)]).toMatchObject([0, { status: "completed" }]);
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
  const replayed = await here.sluice(["replay", runId, ...JSON_OUT]);
  expect([replayed.code, printed(replayed)]).toMatchObject([0, { identical: true }]);
});

test("a rejected one does not run", async () => {
  const here = deskHere();
  const { runId, requestId } = await untilAsked(here);
  const ended = await here.sluice(["answer", runId, requestId, "--value", '"reject"', "--resume", ...JSON_OUT]);
  expect([ended.code, printed(ended)]).toMatchObject([1, { status: "failed" }]);
});

test("in mode yolo no one is asked", async () => {
  const here = deskHere();
  const flags = ["--model", here.script(turns), "--mode", "yolo", "--sandbox", "off", ...JSON_OUT];
  const ended = await here.sluice(["run", "auto", "Write a note", ...flags]);
  expect([ended.code, printed(ended)]).toMatchObject([0, { status: "completed" }]);
});
