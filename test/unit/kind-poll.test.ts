import { existsSync } from "node:fs";
import { type Clock, checkPipeline, done, type Json, type JsonObject, type RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { poll } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type AnyPoll, type CommandSession, commandSession, node, only, play } from "../support/commands.ts";
import { type HandClock, handClock } from "../support/hand-clock.ts";
import { dataOf, eventsOf, eventually, json } from "../support/run-kit.ts";
import { isAlive } from "../support/survivors.ts";
import { type TestWorkspace, tempFolder } from "../support/tools.ts";

// States that run a command until it succeeds.

/** Ends with the next of these codes on each start, the last one from then on, and says how often it was started. */
function codes(...list: readonly number[]): readonly string[] {
  const program = `
    const { appendFileSync, readFileSync } = require("node:fs");
    appendFileSync("starts", "x");
    const starts = readFileSync("starts", "utf8").length;
    console.log(JSON.stringify({ starts }));
    console.error("start " + starts);
    process.exitCode = ${JSON.stringify(list)}[Math.min(starts, ${list.length}) - 1];
  `;
  return node(program);
}

interface Polling {
  readonly session: CommandSession;
  readonly clock: HandClock;
  readonly workspace: TestWorkspace;
  /** Waits until the run sleeps after this attempt. */
  asleep(runId: string, attempt: number): Promise<void>;
}

function polling(workspace = tempFolder(), host?: (clock: Clock) => RunHost, clock = handClock()): Polling {
  const session = commandSession({ workspace, clock, ...(host === undefined ? {} : { host: () => host(clock) }) });
  const hasEnded = async (runId: string, attempt: number): Promise<boolean> => {
    if (!(await session.host.list()).some((run) => run.runId === runId)) return false;
    const [journal] = await session.host.journal(runId);
    const isEnd = (stepId: string): boolean => stepId.endsWith(`/attempt/${attempt}`);
    return journal?.records.some(({ stepId, phase }) => phase === "done" && isEnd(stepId)) === true;
  };
  return {
    session,
    clock,
    workspace,
    asleep: async (runId, attempt) => {
      await eventually(() => hasEnded(runId, attempt), `attempt ${attempt}`);
      await eventually(() => clock.waiting() === 1, `sleep ${attempt}`);
    },
  };
}

/** What the events say of the sleeps of a run. */
async function sleepsOf({ session }: Polling, runId: string): Promise<readonly JsonObject[]> {
  return dataOf(await eventsOf(session.host, runId), "sleep.started");
}

const MINUTE = 60_000;

describe("a poll", () => {
  test("completes with its first attempt if that succeeds", async () => {
    const { output } = await play(poll({ command: codes(0), every: "30s" }));
    const { elapsedMs, ...rest } = z.looseObject({ elapsedMs: z.int().min(0) }).parse(output);
    const parsed = { starts: 1 };
    expect(rest).toEqual({ exitCode: 0, stdout: '{"starts":1}', stderr: "start 1", parsed, attempts: 1 });
    expect(elapsedMs).toBeLessThan(60_000);
  });

  test("sleeps between attempts until one succeeds, and counts from its start", async () => {
    const here = polling();
    const { session, clock, asleep } = here;
    const start = clock.now();
    const run = session.start(only(poll({ command: codes(1, 1, 1, 0), every: "5m" })), {});
    for (const attempt of [1, 2, 3]) {
      await asleep(run.runId, attempt);
      clock.turn(5 * MINUTE);
    }
    expect(await run).toMatchObject({ output: { attempts: 4, elapsedMs: 15 * MINUTE, parsed: { starts: 4 } } });
    expect(await sleepsOf(here, run.runId)).toEqual(
      [1, 2, 3].map((attempt) => ({ attempt, exitCode: 1, sleeps: attempt, until: start + attempt * 5 * MINUTE })),
    );
  });

  test("takes another code of not yet, and fails with any code that is neither", async () => {
    const { session, clock, asleep, workspace } = polling();
    const run = session.start(only(poll({ command: codes(75, 1), every: "1m", notYetCodes: [75] })), {});
    await asleep(run.runId, 1);
    clock.turn(MINUTE);
    const detail = {
      cause: "exit",
      exitCode: 1,
      stdout: '{"starts":2}',
      stderr: "start 2",
      attempts: 2,
      elapsedMs: MINUTE,
    };
    expect(await run).toMatchObject({ output: { code: "poll", detail } });
    expect(workspace.text("starts")).toBe("xx");
  });

  test.each<[string, Partial<AnyPoll>]>([
    ["program", { command: ["no-such-program-here"] }],
    ["working directory", { cwd: "missing" }],
  ])("fails at once without its %s", async (_, options) => {
    const { output } = await play(poll({ command: codes(1), every: "1m", ...options }));
    expect(output).toMatchObject({ code: "poll", detail: { cause: "spawn", exitCode: null, attempts: 1 } });
  });

  test("reads JSON objects only, since other output is for people", async () => {
    const parsedOf = async (text: string): Promise<Json> => {
      const { output } = await play(poll({ command: node(`console.log(${JSON.stringify(text)})`), every: "1m" }));
      return json(z.object({ parsed: z.json() }).parse(output).parsed);
    };
    expect(await parsedOf('{"ready":true}')).toEqual({ ready: true });
    for (const text of ["[1]", "42", "ready", ""]) expect(await parsedOf(text)).toEqual({});
  });
});

describe("a poll in time", () => {
  const hanging = `require("node:fs").writeFileSync("pid", String(process.pid)); setInterval(() => undefined, 1000)`;

  test("stops an attempt that takes too long, and fails", async () => {
    const { output, session } = await play(poll({ command: node(hanging), every: "1m", timeoutMs: 500 }));
    expect(output).toMatchObject({ code: "poll", detail: { cause: "timeout", exitCode: null, attempts: 1 } });
    expect(isAlive(Number(session.workspace.text("pid")))).toBe(false);
  });

  test("stops an attempt that runs when the whole poll is over", async () => {
    const { output, session } = await play(poll({ command: node(hanging), every: "1m", totalTimeoutMs: 500 }));
    expect(output).toMatchObject({ code: "poll", detail: { cause: "total", exitCode: null, attempts: 1 } });
    expect(isAlive(Number(session.workspace.text("pid")))).toBe(false);
  });

  test("fails with what the last attempt printed when no attempt is left before the end", async () => {
    const { session, clock, asleep } = polling();
    const run = session.start(only(poll({ command: codes(1), every: "4m", totalTimeoutMs: "10m" })), {});
    await asleep(run.runId, 1);
    clock.turn(4 * MINUTE);
    await asleep(run.runId, 2);
    clock.turn(4 * MINUTE);
    const detail = { cause: "total", exitCode: 1, stdout: '{"starts":3}', attempts: 3, elapsedMs: 8 * MINUTE };
    expect(await run).toMatchObject({
      output: { code: "poll", message: expect.stringMatching(/within 10m \(3 attempts\)/), detail },
    });
  });

  test("fails without a further attempt if it wakes after its end", async () => {
    const { session, clock, asleep, workspace } = polling();
    const run = session.start(only(poll({ command: codes(1, 0), every: "4m", totalTimeoutMs: "10m" })), {});
    await asleep(run.runId, 1);
    clock.turn(60 * MINUTE);
    expect(await run).toMatchObject({ output: { detail: { cause: "total", attempts: 1, stdout: '{"starts":1}' } } });
    expect(workspace.text("starts")).toBe("x");
  });

  test("fails after its last attempt", async () => {
    const { session, clock, asleep } = polling();
    const run = session.start(only(poll({ command: codes(1), every: "1m", maxAttempts: 2 })), {});
    await asleep(run.runId, 1);
    clock.turn(MINUTE);
    const detail = { cause: "attempts", attempts: 2, exitCode: 1 };
    expect(await run).toMatchObject({ output: { message: expect.stringMatching(/after 2 attempts$/), detail } });
  });

  test("ends when its run is cancelled while it sleeps", async () => {
    const { session, asleep } = polling();
    const run = session.start(only(poll({ command: codes(1), every: "1d" })), {});
    await asleep(run.runId, 1);
    await session.host.cancel(run.runId, "enough", "test");
    expect(await run).toMatchObject({ status: "cancelled" });
  });
});

describe("a poll over several processes", () => {
  test("repeats no attempt, sleeps to the same time and counts from its start", async () => {
    const workspace = tempFolder();
    const memory = createMemoryJournals();
    const clock = handClock();
    const process = (): Polling => polling(workspace, (own) => createHost(memory.connect(), { clock: own }), clock);
    const state = only(poll({ command: codes(1, 1, 1, 0), every: "10m", totalTimeoutMs: "45m" }));
    const first = process();
    const { runId } = first.session.start(state, {});
    for (const sleep of [1, 2, 3]) {
      const current = sleep === 1 ? first : process();
      if (sleep > 1) current.session.resume(state, runId).then(undefined, () => undefined);
      await current.asleep(runId, sleep);
      // Half of the sleep is in this process, and half in the next one.
      clock.turn(5 * MINUTE);
      await current.session.close();
      clock.turn(5 * MINUTE);
    }
    const last = process();
    const output = { attempts: 4, elapsedMs: 30 * MINUTE, parsed: { starts: 4 } };
    expect(await last.session.resume(state, runId)).toMatchObject({ status: "completed", output });
  });

  test("repeats the attempt that was running when its process died, and stops that one first", async () => {
    const workspace = tempFolder();
    const memory = createMemoryJournals();
    const program = `require("node:fs").appendFileSync("pids", process.pid + "\\n"); if (!require("node:fs").existsSync("go")) setInterval(() => undefined, 1000)`;
    const state = only(poll({ command: node(program), every: "1m" }));
    const first = commandSession({ workspace, host: () => createHost(memory.connect()) });
    const run = first.start(state, {});
    await eventually(() => existsSync(workspace.path("pids")) && workspace.text("pids").endsWith("\n"), "the start");
    await first.close();
    await run;
    workspace.put("go", "");
    const second = commandSession({ workspace, host: () => createHost(memory.connect()) });
    expect(await second.resume(state, run.runId)).toMatchObject({ output: { attempts: 1, exitCode: 0 } });
    const pids = workspace.text("pids").trim().split("\n").map(Number);
    expect(pids.map(isAlive)).toEqual([false, false]);
  });
});

test.each<[object, RegExp]>([
  [{}, /every is missing: it is the time between attempts/],
  [{ every: "often" }, /every must be a duration/],
  [{ every: 999 }, /every must be at least 1s/],
  [{ every: "1m", notYetCodes: [0] }, /notYetCodes 0 is also a code of success/],
  [{ every: "1m", totalTimeoutMs: -1 }, /totalTimeoutMs must be a duration above 0/],
  [{ every: "1m", maxAttempts: 0 }, /maxAttempts must be a whole number from 1/],
  [{ every: "1m", repeat: true }, /repeat is not a known option/],
])("a mistake in a poll is a problem of its pipeline: %j", (options, problem) => {
  const given: object = { command: ["true"], ...options };
  const run = poll(given as AnyPoll);
  const definition = {
    id: "p",
    input: { type: "object" },
    stages: { run },
    initial: "run",
    next: { run: () => done(null) },
  } as const;
  const found = checkPipeline(definition).map(({ path, message }) => `${path.replace("stages.run.", "")} ${message}`);
  expect(found).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
});

test("codes of not yet are those that are no success, without being named", () => {
  const run = poll({ command: ["true"], every: "1m", successCodes: [0, 1] });
  const definition = {
    id: "p",
    input: { type: "object" },
    stages: { run },
    initial: "run",
    next: { run: () => done(null) },
  } as const;
  expect(checkPipeline(definition)).toEqual([]);
});
