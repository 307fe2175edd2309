import { existsSync } from "node:fs";
import { done, type JsonObject, pipeline, to } from "@sluice/core";
import { poll } from "@sluice/stages";
import { describe, expect } from "vitest";
import { commandSession, node, only, play } from "../../support/commands.ts";
import { defect, fact, ours } from "../../support/duet.ts";
import { handClock } from "../../support/hand-clock.ts";
import { dataOf, eventsOf, eventually } from "../../support/run-kit.ts";
import { isAlive } from "../../support/survivors.ts";

// Polls.

const MINUTE = 60_000;
/** Ends with the next of these codes on each start, the last one from then on. */
function codes(...list: readonly number[]): readonly string[] {
  return node(`
    const { appendFileSync, readFileSync } = require("node:fs");
    appendFileSync("starts", "x");
    process.exitCode = ${JSON.stringify(list)}[Math.min(readFileSync("starts", "utf8").length, ${list.length}) - 1];
  `);
}

function sleeper() {
  const clock = handClock();
  const session = commandSession({ clock });
  const sleepsOf = async (runId: string): Promise<readonly JsonObject[]> =>
    (await session.host.list()).some((run) => run.runId === runId)
      ? dataOf(await eventsOf(session.host, runId), "sleep.started")
      : [];
  /** Waits until the run sleeps for so many times. */
  const asleep = async (runId: string, times: number): Promise<JsonObject | undefined> => {
    await eventually(async () => (await sleepsOf(runId)).length === times, `sleep ${times}`);
    return (await sleepsOf(runId)).at(-1);
  };
  return { clock, session, asleep };
}

describe("an attempt", () => {
  fact(
    56,
    "the exit code alone decides: empty output, text and JSON complete, and other codes may be named",
    async () => {
      for (const text of ["", "waiting", '{"done":false}'])
        expect(
          (await play(poll({ command: node(`console.log(${JSON.stringify(text)})`), every: "1m" }))).output,
        ).toMatchObject({ exitCode: 0, attempts: 1 });
      expect((await play(poll({ command: codes(3), every: "1m", successCodes: [3] }))).output).toMatchObject({
        exitCode: 3,
      });
      const { session, asleep } = sleeper();
      const run = session.start(only(poll({ command: codes(1), every: "1m" })), {});
      expect(await asleep(run.runId, 1)).toMatchObject({ exitCode: 1 });
      await run.cancel("enough");
    },
  );

  fact(57, "a poll that sleeps says until when and how often, and a wake makes exactly one attempt", async () => {
    const { clock, session, asleep } = sleeper();
    const run = session.start(only(poll({ command: codes(1), every: "30m" })), {});
    const until = clock.now() + 30 * MINUTE;
    expect(await asleep(run.runId, 1)).toMatchObject({ until, sleeps: 1 });
    expect(await session.host.get(run.runId)).toMatchObject({ wakeAt: until });
    // Late, by several intervals.
    clock.turn(200 * MINUTE);
    expect(await asleep(run.runId, 2)).toMatchObject({ until: clock.now() + 30 * MINUTE, sleeps: 2 });
    expect(session.workspace.text("starts")).toBe("xx");
    await run.cancel("enough");
  });

  defect("D10", "a program or working directory that does not exist fails the poll at once", async () => {
    for (const broken of [{ command: ["no-such-program-here"] }, { command: codes(1), cwd: "missing" }])
      expect((await play(poll({ ...broken, every: "1m" }))).output).toMatchObject({
        code: "poll",
        detail: { cause: "spawn", attempts: 1 },
      });
  });
});

describe("the end of a poll", () => {
  ours(58, "a poll that was not ready in time fails, and the failure leads on", async () => {
    const { clock, session, asleep } = sleeper();
    const run = session.start(only(poll({ command: codes(1), every: "4m", totalTimeoutMs: "5m" })), {});
    await asleep(run.runId, 1);
    clock.turn(4 * MINUTE);
    expect(await run).toMatchObject({
      output: { code: "poll", detail: { cause: "total", attempts: 2, elapsedMs: 4 * MINUTE } },
    });
  });

  defect("D9", "the time of an attempt and of the whole poll stop the command that runs", async () => {
    const hanging = node(
      `require("node:fs").writeFileSync("pid", String(process.pid)); setInterval(() => undefined, 1000)`,
    );
    for (const limit of [{ timeoutMs: 300 }, { totalTimeoutMs: 300 }]) {
      const { clock, session } = sleeper();
      const run = session.start(only(poll({ command: hanging, every: "1m", ...limit })), {});
      const pid = (): number => (existsSync(session.workspace.path("pid")) ? Number(session.workspace.text("pid")) : 0);
      await eventually(() => pid() > 0, "the command");
      let isOver = false;
      const ended = run.then((result) => {
        isOver = true;
        return result;
      });
      await eventually(() => {
        // Also past the time that a command has to end by itself.
        clock.turn(300);
        return isOver;
      }, "the end of the poll");
      expect(await ended).toMatchObject({ output: { code: "poll", detail: { exitCode: null, attempts: 1 } } });
      expect(isAlive(pid())).toBe(false);
    }
  });

  ours(59, "a poll that succeeds again and again ends at the cap on visits of its state", async () => {
    const gate = poll({ command: ["true"], every: "1m" });
    const looping = pipeline({
      id: "looping",
      input: { type: "object" },
      stages: { gate },
      initial: "gate",
      limits: { maxVisits: 3 },
      next: { gate: (_, ctx) => (ctx.visit > 99 ? done(null) : to("gate")) },
    });
    const result = await commandSession().run(looping, {});
    expect(result).toMatchObject({ status: "failed", error: { code: "limit_visits" } });
  });
});
