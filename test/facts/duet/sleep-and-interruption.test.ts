import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ActScope, done, type Json, pipeline, SluiceError, to } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { INTERRUPTION_SIGNAL } from "@sluice/core/runtime";
import { createSession, interruptRun, sendMessage } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { fact, finish, input, one, saying, task, worker } from "../../support/facts.ts";
import { handClock } from "../../support/hand-clock.ts";
import {
  caller,
  cancelled,
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  twoHosts,
  work,
  workExecutor,
} from "../../support/run-kit.ts";
import { isAlive } from "../../support/survivors.ts";
import { talker } from "../../support/talker.ts";

/** A state that sleeps once until a time, and says that it has slept. */
function sleeper(until: number, begun: () => void = () => undefined) {
  return pipeline({
    id: "sleeper",
    input,
    stages: {
      sleep: work<Json>({
        act: async (scope) => {
          if (scope.ctx.visit > 1) return completed(scope.ctx.feedback ?? null);
          begun();
          await scope.sleep("sleep/1", until, { why: "the build" });
          return scope.signal.aborted ? { ...cancelled("woken"), partial: { slept: true } } : completed("slept");
        },
      }),
      after: work<Json>({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
    },
    initial: "sleep",
    next: { sleep: () => to("after"), after: ({ output }) => done(output) },
  });
}

/** Works in one step until it is stopped. */
async function untilStopped(scope: ActScope, begun: () => void): Promise<void> {
  await scope.steps.run("work", async (call) => {
    begun();
    await new Promise<void>((resolve) => call.signal.addEventListener("abort", () => resolve(), { once: true }));
    return null;
  });
}
function slow(begun: () => void, order: string[] = []) {
  return pipeline({
    id: "slow",
    input,
    stages: {
      slow: work<Json>({
        act: async (scope) => {
          if (scope.ctx.visit > 1) return completed(scope.ctx.feedback ?? null);
          await untilStopped(scope, begun);
          order.push("stopped");
          return { ...cancelled("stopped"), partial: "the first half" };
        },
        exit: ({ status }) => void order.push(`exit ${status}`),
      }),
    },
    initial: "slow",
    next: { slow: ({ output }) => done(output) },
  });
}

fact(64, "a finished run has nothing to wake: it cannot continue, and stays as it ended", async () => {
  const live = session({ model: noModel });
  const run = live.start(sleeper(0), task);
  expect(await run).toMatchObject({ status: "completed" });
  const before = await live.host.journal(run.runId);
  await expect(live.resume(sleeper(0), run.runId)).rejects.toMatchObject({ code: "run_finished" });
  expect(await live.host.journal(run.runId)).toEqual(before);
});

fact(65, "after an interruption nothing wakes by itself, however often its time passes", async () => {
  const clock = handClock();
  const live = session({ model: noModel, clock });
  let isAsleep = false;
  const asleep = sleeper(clock.now() + 60_000, () => {
    isAsleep = true;
  });
  const run = live.start(asleep, task);
  await eventually(() => isAsleep);
  await run.interrupt("not this build");
  const records = (await live.host.journal(run.runId))[0]?.records.length;
  for (let times = 0; times < 3; times += 1) {
    clock.turn(120_000);
    await quiet();
  }
  expect((await live.host.journal(run.runId))[0]?.records.length).toBe(records);
  expect(await live.host.get(run.runId)).toMatchObject({ status: "suspended", suspended: "interrupted" });
});

fact(66, "a cancel that comes late never replaces how a run has ended", async () => {
  const live = session({ model: noModel });
  const run = live.start(sleeper(0), task);
  await run;
  expect(await live.host.cancel(run.runId, "too late", "ann")).toBe("finished");
  await expect(interruptRun(live.host, run.runId, "too late", "ann")).rejects.toMatchObject({ code: "run_finished" });
  expect(await live.host.get(run.runId)).toMatchObject({ status: "completed" });
});

fact(67, "a message to a sleeping run leaves it asleep until the same time, and is read afterwards", async () => {
  const clock = handClock();
  const model = talker(() => finish());
  const live = session({ model, clock });
  const until = clock.now() + 60_000;
  let isAsleep = false;
  const asleep = pipeline({
    id: "reads",
    input,
    stages: {
      sleep: work<Json>({
        act: async (scope) => {
          isAsleep = true;
          await scope.sleep("sleep/1", until);
          return completed(null);
        },
      }),
      read: worker({ allowedTools: [] }),
    },
    initial: "sleep",
    next: { sleep: () => to("read"), read: ({ output }) => done(output) },
  });
  const run = live.start(asleep, task);
  await eventually(() => isAsleep);
  await sendMessage(live.host, run.runId, "Take the small one.", "ann");
  clock.turn(59_999);
  await quiet();
  expect(model.heard).toHaveLength(0);
  clock.turn(1);
  expect(await run).toMatchObject({ status: "completed" });
  expect(JSON.stringify(model.heard[0]?.messages)).toContain("Take the small one.");
  expect(dataOf(await eventsOf(live.host, run.runId), "sleep.started")).toMatchObject([{ until, sleeps: 1 }]);
});

fact(69, "an interruption ends its execution once, after its teardown; a second one is part of it", async () => {
  const { first, second } = twoHosts();
  const order: string[] = [];
  let isWorking = false;
  const busy = slow(() => {
    isWorking = true;
  }, order);
  const live = session({ model: noModel, host: first });
  const run = live.start(busy, task);
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { type, data } of run.events) if (type === "stage.exit" && data.phase === "left") seen.push(type);
  })();
  await eventually(() => isWorking);
  await Promise.all([
    interruptRun(second, run.runId, "wrong branch", "ann"),
    interruptRun(second, run.runId, "and wrong file", "bob"),
  ]);
  const [mine, theirs] = [await run, await run];
  expect(mine).toBe(theirs);
  await watching;
  expect(mine).toMatchObject({ status: "suspended", reason: "interrupted" });
  expect(order).toEqual(["stopped", "exit cancelled"]);
  expect(seen).toEqual(["stage.exit"]);
  expect(dataOf(await eventsOf(first, run.runId), "execution.interrupted")).toHaveLength(1);
});

fact(70, "a sleeping run without a process is interrupted when it continues, and its sleep is over", async () => {
  const clock = handClock();
  const memory = createMemoryJournals();
  const store = memory.connect();
  let isAsleep = false;
  const asleep = sleeper(clock.now() + 3_600_000, () => {
    isAsleep = true;
  });
  const dying: JournalStore = {
    ...store,
    append: (commit) => {
      if (commit.record.phase === "lifecycle") throw new SluiceError("Host", "store_io", "the process was killed");
      return store.append(commit);
    },
  };
  const run = session({ model: noModel, clock, host: createHost(dying, { clock }) }).start(asleep, task);
  await eventually(() => isAsleep);
  await expect(run.suspend()).rejects.toMatchObject({ code: "store_io" });
  const host = createHost(memory.connect(), { clock });
  await host.signal(run.runId, { name: INTERRUPTION_SIGNAL, payload: { reason: "no need" }, by: "ann" });
  const later = session({ model: noModel, host, clock });
  expect(await later.resume(asleep, run.runId)).toMatchObject({ status: "suspended", reason: "interrupted" });
  expect(dataOf(await eventsOf(host, run.runId), "execution.interrupted")).toMatchObject([{ reason: "no need" }]);
  const again = await later.resume(asleep, run.runId);
  const stages = [{ status: "cancelled", partial: { slept: true } }, { executionId: "sleep#2" }, {}];
  expect(again).toMatchObject({ status: "completed", stages });
});

fact(
  71,
  "a killed run knows what it was doing: its execution continues under the same name, and ends once",
  async () => {
    const { first, second } = twoHosts();
    const said: string[] = [];
    const model = talker(({ turn }) => {
      said.push(`turn ${turn}`);
      if (turn === 0) void run.suspend();
      return finish();
    });
    const run = session({ model, host: first }).start(one(worker({ allowedTools: [] })), task);
    await run;
    const resumed = await session({ model: saying(finish()), host: second }).resume(
      one(worker({ allowedTools: [] })),
      run.runId,
    );
    expect(resumed).toMatchObject({ status: "completed", stages: [{ executionId: "one#1" }] });
    const events = await eventsOf(second, run.runId);
    const exits = events.filter(({ type, data }) => type === "stage.exit" && data.phase === "left");
    expect(exits.map(({ executionId }) => executionId)).toEqual(["one#1"]);
  },
);

fact(73, "a resumed run sends the same request as one that never stopped", async () => {
  const { first, second } = twoHosts();
  const looks = { calls: [{ tool: "Glob", input: { pattern: "*.none" } }] };
  const whole = talker(({ turn }) => (turn === 0 ? looks : finish()));
  await session({ model: whole }).run(one(worker({ allowedTools: ["Glob"] })), task);
  const half = talker(({ turn }) => {
    if (turn === 1) void run.suspend();
    return turn === 0 ? looks : finish();
  });
  const run = session({ model: half, host: first }).start(one(worker({ allowedTools: ["Glob"] })), task);
  await run;
  const rest = talker(() => finish());
  await session({ model: rest, host: second }).resume(one(worker({ allowedTools: ["Glob"] })), run.runId);
  expect(rest.heard[0]?.messages).toEqual(whole.heard[1]?.messages);
});

fact(
  78,
  "an interruption returns when the processes of what it stopped are gone, and closing a session ends them, too",
  async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-groups-")));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const running = (name: string): number => {
      const text = existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8").trim() : "";
      return text === "" ? 0 : Number(text);
    };
    const shells = pipeline({
      id: "shells",
      input,
      stages: {
        shell: work<Json>({
          act: async (scope) => {
            const line = `sleep 600 & echo $! > pid-${scope.ctx.visit}; wait`;
            await caller(scope)("Bash", { command: line });
            return scope.signal.aborted ? cancelled("stopped") : completed(null);
          },
        }),
      },
      initial: "shell",
      next: { shell: () => done(null) },
    });
    const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
    const live = createSession({
      model: noModel,
      cwd: folder,
      env,
      mode: "yolo",
      sandbox: "off",
      executors: [workExecutor],
    });
    const run = live.start(shells, task);
    await eventually(() => running("pid-1") > 0);
    await run.interrupt("enough");
    expect(isAlive(running("pid-1"))).toBe(false);
    void live.resume(shells, run.runId);
    await eventually(() => running("pid-2") > 0);
    await live.close();
    await eventually(() => !isAlive(running("pid-2")));
  },
);

fact(79, "what stops a run waits for the cleanup of what it executes, and each end is recorded once", async () => {
  const order: string[] = [];
  let isWorking = false;
  const live = session({ model: noModel });
  const run = live.start(
    slow(() => {
      isWorking = true;
    }, order),
    task,
  );
  await eventually(() => isWorking);
  await run.cancel("enough");
  order.push((await run).status);
  expect(order).toEqual(["stopped", "exit cancelled", "cancelled"]);
  const ended = dataOf(await eventsOf(live.host, run.runId), "run.finished");
  expect(ended).toHaveLength(1);
});

fact(80, "the history of a run is complete: nothing of it is dropped, however long it is", async () => {
  const rounds = 60;
  const loop = pipeline({
    id: "loop",
    input: z.object({ task: z.string() }),
    limits: { maxVisits: rounds, maxHops: rounds + 1 },
    stages: { round: work<Json>({ act: ({ ctx }) => completed(ctx.visit) }) },
    initial: "round",
    next: { round: ({ output }) => (output === rounds ? done(output) : to("round")) },
  });
  const live = session({ model: noModel });
  const run = live.start(loop, task);
  expect(await run).toMatchObject({ status: "completed", output: rounds });
  const events = await eventsOf(live.host, run.runId);
  expect(dataOf(events, "attempt.started")).toHaveLength(rounds);
  expect(events[0]).toMatchObject({ type: "run.started" });
});

test("D12: an execution that was interrupted by a kill and then by a person has one closing event", async () => {
  const { first, second } = twoHosts();
  let isWorking = false;
  const busy = slow(() => {
    isWorking = true;
  });
  const run = session({ model: noModel, host: first }).start(busy, task);
  await eventually(() => isWorking);
  await run.suspend();
  isWorking = false;
  const later = session({ model: noModel, host: second });
  const resumed = later.resume(busy, run.runId);
  await eventually(() => isWorking);
  await resumed.interrupt("wrong");
  const events = await eventsOf(second, run.runId);
  const started = events.filter(({ type }) => type === "attempt.started").map(({ executionId }) => executionId);
  const ended = events
    .filter(({ type, data }) => type === "stage.exit" && data.phase === "left")
    .map(({ executionId }) => executionId);
  expect([started, ended]).toEqual([["slow#1"], ["slow#1"]]);
  expect(await later.resume(busy, run.runId)).toMatchObject({
    status: "completed",
    output: expect.stringContaining("the first half"),
  });
});
