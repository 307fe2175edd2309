import assert from "node:assert/strict";
import { readCost } from "../../journal/record.ts";
import type { ProgramEnd, StepCall, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  stepsOf,
} from "../world.ts";

/** Requests two steps at once, which is an error. */
async function concurrentSteps(steps: StepRunner, calls: string[]): Promise<ProgramEnd> {
  const step = (id: string): Promise<string> =>
    steps.run(id, () => {
      calls.push(id);
      return id;
    });
  return completed(await Promise.all([step("one"), step("two")]));
}

/** A run takes one step at a time, and each step has an ordinal and its records. */
export const stepFacts: Facts = {
  "a second step while one is open is rejected, and its function is not called": async ({ connect }) => {
    const { host } = await connect();
    const calls: string[] = [];
    const gate = createGate<string>();
    const task = await start(host, async (steps) => {
      const first = steps.run("first", async () => {
        calls.push("first");
        return await gate.wait();
      });
      await rejects(
        steps.run("second", () => {
          calls.push("second");
          return null;
        }),
        "step_overlap",
        "Host",
      );
      gate.open("done");
      return completed(await first);
    });
    await rejects(task.settled, "step_overlap");
    assert.deepEqual(calls, ["first"]);
    assert.equal((await stepsOf(host)).includes("done second"), false);
    assert.equal((await host.get("r1"))?.status, "suspended");
  },

  "waits, sleeps and fan-outs are steps too: none may overlap another": async ({ connect }) => {
    const { host } = await connect();
    const others: Record<string, (steps: StepRunner) => Promise<unknown>> = {
      wait: (steps) => steps.waitForSignal("news"),
      take: (steps) => steps.takeSignals("take", "news"),
      sleep: (steps) => steps.sleepUntil("sleep", 1),
      now: (steps) => steps.now("now"),
      fanOut: (steps) =>
        steps.runChildren("fan", [], {
          onFailure: "settle",
          failed: () => false,
          open: { events: [] },
          joined: () => [],
        }),
    };
    for (const [name, other] of Object.entries(others)) {
      const task = await start(
        host,
        async (steps) => {
          const first = steps.run("first", async () => null);
          await rejects(other(steps), "step_overlap");
          await first;
          return completed();
        },
        { runId: name },
      );
      await rejects(task.settled, "step_overlap");
    }
  },

  "concurrent steps are rejected on resume as they were on the first run": async ({ connect }) => {
    const { host } = await connect();
    const calls: string[] = [];
    const task = await start(host, (steps) => concurrentSteps(steps, calls));
    await rejects(task.settled, "step_overlap");
    for (let round = 0; round < 2; round += 1) {
      const again = await host.resume("r1", (steps) => concurrentSteps(steps, calls));
      await rejects(again.settled, "step_overlap");
    }
    assert.equal(calls.includes("two"), false);
  },

  "a program that returns while a step is open does not end its run, and the step is aborted and awaited": async ({
    connect,
  }) => {
    const [{ host }, other] = await Promise.all([connect(), connect()]);
    const gate = createGate();
    let aborted: unknown;
    const task = await start(host, async (steps) => {
      void steps.run("left", async ({ signal }) => {
        signal.addEventListener("abort", () => {
          aborted = signal.reason;
        });
        await gate.wait();
        return null;
      });
      await gate.reached;
      return completed();
    });
    await gate.reached;
    const settled = rejects(task.settled, "step_left_open", "Host");
    await rejects(
      other.host.resume("r1", async () => completed()),
      "run_owned",
    );
    gate.open();
    await settled;
    assert.ok(aborted instanceof Error);
    assert.deepEqual(await recordsOf(host), ["lifecycle start"]);
    const again = await other.host.resume("r1", async (steps) => completed(await steps.run("left", () => 1)));
    assert.deepEqual(await endOf(again), { status: "completed", value: 1 });
  },

  "a program that returns during a fan-out does not end its run, and the children are stopped and awaited": async ({
    connect,
  }) => {
    const { host } = await connect();
    const gate = createGate();
    const stopped: string[] = [];
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        void steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        await gate.reached;
        return completed();
      }
      await steps.run("work", async ({ signal }) => {
        if (steps.runId.endsWith("b")) void gate.wait();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        stopped.push(steps.runId);
        return null;
      });
      return completed();
    });
    await rejects(task.settled, "step_left_open");
    assert.deepEqual(stopped, ["r1/fan/a", "r1/fan/b"]);
    assert.equal((await host.get("r1"))?.status, "suspended");
    await expectWhole(host);
  },

  "a step after the end of the run is rejected, and no record follows the end": async ({ connect }) => {
    const { host } = await connect();
    let leaked: StepRunner | undefined;
    const task = await start(host, async (steps) => {
      leaked = steps;
      return completed();
    });
    await endOf(task);
    assert.ok(leaked !== undefined);
    await rejects(
      leaked.run("late", () => assert.fail("called after the end")),
      "run_over",
    );
    assert.deepEqual(await recordsOf(host), ["lifecycle start", "lifecycle end"]);
    await expectWhole(host);
  },

  "seq counts records, ordinal counts steps, and lifecycle records have no ordinal": async ({ connect }) => {
    const { host } = await connect();
    const open = { events: [], intent: { writes: "a" } };
    const task = await start(host, async (steps) => {
      await steps.run("one", () => null);
      await steps.run("two", () => null, { open });
      await steps.run("three", () => null);
      return completed();
    });
    await endOf(task);
    const [journal] = await host.journal("r1");
    assert.deepEqual(
      journal?.records.map(({ seq, ordinal, phase, stepId }) => [seq, ordinal, phase, stepId]),
      [
        [0, -1, "lifecycle", "start"],
        [1, 0, "done", "one"],
        [2, 1, "open", "two"],
        [3, 1, "done", "two"],
        [4, 2, "done", "three"],
        [5, -1, "lifecycle", "end"],
      ],
    );
    assert.equal(journal.records[2]?.value, '{"writes":"a"}');
  },

  "what a step may use is in its open record and what it used in its done record, and a resume reads both": async ({
    connect,
  }) => {
    const { host } = await connect();
    const most = { inputTokens: 10, outputTokens: 5 };
    const used = { inputTokens: 7, outputTokens: 1, costUsd: 0.5 };
    const task = await start(host, async (steps) => {
      await steps.run("one", () => used, { open: { events: [], cost: most }, cost: (value) => value });
      await steps.run("two", () => null);
      await steps.run("three", () => assert.fail("stops the run"), { open: { events: [], cost: most } });
      return completed();
    });
    await assert.rejects(task.settled, /stops the run/);
    await host.close();
    const { host: other } = await connect();
    let opened: StepCall["opened"];
    const resumed = await other.resume("r1", async (steps) => {
      const costs = [
        await steps.run("one", () => assert.fail("recorded"), { cost: () => assert.fail("recorded") }),
        await steps.run("two", () => assert.fail("recorded")),
        await steps.run("three", (call) => {
          opened = call.opened;
          return null;
        }),
      ];
      return completed(costs);
    });
    await endOf(resumed);
    assert.deepEqual(opened?.cost, most);
    const [journal] = await other.journal("r1");
    const steps = journal?.records.filter(({ phase }) => phase !== "lifecycle") ?? [];
    assert.deepEqual(steps.map(readCost), [most, used, undefined, most, undefined]);
    await expectWhole(other);
  },

  "a program that returns an unknown status does not end its run": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async () => JSON.parse('{"status":"done","value":1,"events":[]}'));
    await rejects(task.settled, "end_invalid");
    assert.deepEqual(await recordsOf(host), ["lifecycle start"]);
    assert.equal((await host.get("r1"))?.status, "suspended");
  },
};
