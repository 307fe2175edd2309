import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { FrameThrottle } from "../../packages/tui/src/app/frame-throttle.ts";
import { Outbox } from "../../packages/tui/src/app/outbox.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { appOverRun } from "../support/app-over-run.ts";
import { printed, textAt } from "../support/command.ts";
import type { DeskHere } from "../support/command-here.ts";
import { handClock } from "../support/hand-clock.ts";
import { sends } from "../support/workflow-desk.ts";

// A run that sleeps, in the app.

const WORKFLOW = `id: publish
initial: cooling
states:
  cooling: { timer: { for: 2h }, on: { success: writing } }
  writing:
    instructions: Write about {{ctx.task}}.
    on: { WRITTEN: complete }
  complete: { type: final, outcome: completed }
`;

/** Starts a run that is suspended in its sleep, and returns its id. */
async function asleep(outside: DeskHere): Promise<string> {
  outside.write("publish.yaml", WORKFLOW);
  const model = outside.script({ writing: [sends("WRITTEN")] });
  const args = ["run", "publish.yaml", "a task", "--model", model, "--suspend-sleeps", "--output-format", "json"];
  return textAt(printed(await outside.sluice(args)), "runId");
}

test("the list of runs says when each one that sleeps wakes, and counts down while it is open", async () => {
  const { app, until, surface, runId } = await appOverRun(asleep);
  app.submit("/runs");
  await until(() => app.state().viewer !== undefined);
  const row = (): string => surface.rows().find((one) => one.includes(runId)) ?? "";
  expect(row()).toMatch(/☾ sleeping · wakes in (?:2h00m|1h59m)/);
  expect(app.state().viewer?.ticks).toBe(true);
});

test("a run that sleeps without a process says when it wakes and what wakes it, and a message waits until then", async () => {
  const { app, until, surface, saidSo, runId } = await appOverRun(asleep);
  app.submit(`/show ${runId}`);
  await until(() => app.state().view?.status === "sleeping");
  const frame = (): string => stripVTControlCharacters(surface.rows().join("\n"));
  expect(frame()).toMatch(/☾ cooling sleeping · wakes in (?:2h00m|1h59m)/);
  expect(frame()).toMatch(/☾ wakes in (?:2h00m|1h59m), by sluice wake or \/resume/);
  expect(frame()).toContain("/resume continues the run; a message waits until then");
  app.submit("please be brief");
  await saidSo("sent; an agent reads it before its next turn, once the run continues; /resume continues it");
  expect(frame()).toContain("❯ not read yet: please be brief");
  for (const text of ["one", "two\u001b[2J\u202e", "three ".repeat(500)]) app.submit(text);
  await until(() => app.state().sent.length === 4);
  expect(frame()).toContain("… and 2 older messages");
  for (const [width, height] of [
    [200, 24],
    [40, 10],
    [20, 5],
    [9, 3],
  ] as const) {
    app.resize({ width, height });
    expect(surface.rows().length).toBeLessThan(height);
    for (const row of surface.rows())
      expect(widthOf([{ text: stripVTControlCharacters(row) }])).toBeLessThanOrEqual(width);
  }
  app.resize({ width: 200, height: 24 });
  app.submit(`/cancel ${runId}`);
  await saidSo("the run ended before a model read your message: please be brief");
  expect(app.state().sent).toEqual([]);
});

test("frames are drawn once a second while a time passes in them, and not otherwise", () => {
  const clock = handClock();
  let isTicking = true;
  let frames = 0;
  const throttle = new FrameThrottle(clock, () => isTicking);
  throttle.subscribe(() => {
    frames += 1;
  });
  throttle.now();
  for (let times = 0; times < 50; times += 1) clock.turn(100);
  expect(frames).toBe(6);
  isTicking = false;
  for (let times = 0; times < 50; times += 1) clock.turn(100);
  expect(frames).toBe(7);
  throttle.close();
});

test("a message is settled by the turn that read it, also if its text was masked on the way", () => {
  const outbox = new Outbox();
  const sent = { runId: "r1/fan-1/a", by: "ann", from: 10, to: 12 };
  outbox.add({ ...sent, text: "the token is s3cret" });
  outbox.add({ ...sent, text: "hurry", from: 13, to: 13 });
  const read = { runId: "r1/fan-1/a", executionId: "plan#1", turn: 3, by: "ann", kind: "steer", sentAt: 11 } as const;
  const earlier = { ...read, text: "hurry", sentAt: 5 };
  const fates = outbox.settle({ runId: "r1", messages: [earlier, { ...read, text: "the token is [redacted]" }] });
  expect(fates).toEqual({ read: [{ ...read, text: "the token is [redacted]" }], unread: [] });
  expect(outbox.of("r1")).toMatchObject([{ text: "hurry" }]);
  expect(outbox.of("r2")).toEqual([]);
  expect(outbox.settle({ runId: "r1", messages: [], endedAt: 20 })).toMatchObject({
    read: [],
    unread: [{ text: "hurry" }],
  });
  expect(outbox.of("r1")).toEqual([]);
});
