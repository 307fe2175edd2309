import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, pipeline } from "@sluice/core";
import { createSession, interruptRun, script, timer } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { dataOf, eventsOf, eventually, noModel, session, twoHosts } from "../support/run-kit.ts";

const task = { task: "x" };

test("a command that a person interrupts leaves its streams so far", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-script-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const line = 'echo "half of it"; [ -e begun ] && exit 0; touch begun; sleep 600';
  const shells = pipeline({
    id: "shells",
    input: z.object({ task: z.string() }),
    stages: { build: script({ command: { shell: line } }) },
    initial: "build",
    next: { build: ({ output }) => done(output.stdout) },
  });
  const live = createSession({
    model: noModel,
    cwd: folder,
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    sandbox: "off",
  });
  onTestFinished(() => live.close());
  const run = live.start(shells, task);
  await eventually(() => existsSync(join(folder, "begun")));
  await run.interrupt("wrong folder");
  expect(await live.resume(shells, run.runId)).toMatchObject({
    status: "completed",
    stages: [
      { status: "cancelled", partial: { stdout: expect.stringContaining("half of it") } },
      { status: "completed" },
    ],
  });
});

test("a timer that sleeps without a process is interrupted when its run continues, and does not sleep on", async () => {
  const { clock, first, second } = twoHosts();
  const waits = pipeline({
    id: "waits",
    input: z.object({ task: z.string() }),
    stages: { wait: timer({ for: "3h" }) },
    initial: "wait",
    next: { wait: ({ output }) => done(output.elapsedMs) },
  });
  const asleep = session({ model: noModel, host: first, clock, suspendSleepsOver: 0 });
  const run = asleep.start(waits, task);
  expect(await run).toMatchObject({ status: "suspended", reason: "sleeping" });
  await interruptRun(second, run.runId, "too long", "ann");
  const later = session({ model: noModel, host: second, clock, suspendSleepsOver: 0 });
  expect(await later.resume(waits, run.runId)).toMatchObject({ status: "suspended", reason: "interrupted" });
  const events = await eventsOf(second, run.runId);
  expect(dataOf(events, "execution.interrupted")).toMatchObject([{ by: "ann", reason: "too long" }]);
  expect(dataOf(events, "sleep.ended")).toMatchObject([{ by: "cancelled" }]);
  await expect(interruptRun(second, run.runId, "", "ann")).rejects.toMatchObject({ code: "run_suspended" });
  expect((await second.due(10)).runs).toEqual([]);
  // The new visit sleeps again.
  expect(await later.resume(waits, run.runId)).toMatchObject({ status: "suspended", reason: "sleeping" });
});
