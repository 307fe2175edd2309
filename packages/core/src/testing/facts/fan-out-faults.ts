import assert from "node:assert/strict";
import type { ProgramEnd, StepRunner } from "../../journal/seam.ts";
import type { ConformanceHost } from "../harness.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  type Gate,
  isSettled,
  recordsOf,
  rejects,
  start,
  statusesOf,
  stepsOf,
  type World,
} from "../world.ts";

interface Slow {
  /** Reached when the function of the slow child runs; opened to let it end. */
  readonly gate: Gate<void>;
  readonly reasons: unknown[];
}

/** A fan-out whose child `slow` runs until its gate opens and ignores its AbortSignal; the other children end at once. */
function fanOutWithSlow({ gate, reasons }: Slow, keys: readonly string[]) {
  return async (steps: StepRunner): Promise<ProgramEnd> => {
    if (steps.runId === "r1") {
      return completed(
        statusesOf(
          await steps.runChildren(
            "fan",
            keys.map((key) => child(key)),
            fanOutOptions(),
          ),
        ),
      );
    }
    if (steps.runId.endsWith("/slow")) {
      await steps.run("work", async ({ signal }) => {
        signal.addEventListener("abort", () => reasons.push(signal.reason));
        await gate.wait();
        return null;
      });
    } else {
      await gate.reached;
      await steps.run("work", () => null);
    }
    return completed();
  };
}

/** Fails one record of a sibling while the slow child runs, then resumes the run elsewhere. */
async function faultBeside(world: World, keys: readonly string[], fails: Parameters<ConformanceHost["failWrites"]>[0]) {
  const [first, second] = [await world.connect(), await world.connect()];
  const slow: Slow = { gate: createGate(), reasons: [] };
  first.failWrites(fails);
  const program = fanOutWithSlow(slow, keys);
  const task = await start(first.host, program);
  await slow.gate.reached;
  // The run stays owned until its last child has ended.
  assert.equal(await isSettled(task.settled), false);
  assert.equal(slow.reasons.length, 1);
  await rejects(second.host.resume("r1", program), "run_owned");
  slow.gate.open();
  await rejects(task.settled, "store_io");
  assert.deepEqual(await stepsOf(second.host), ["open fan"]);
  assert.deepEqual(await stepsOf(second.host, "r1/fan/slow"), []);
  await expectWhole(second.host);
  const again = await second.host.resume("r1", program);
  assert.deepEqual((await endOf(again)).value, Object.fromEntries(keys.map((key) => [key, "completed"])));
  await expectWhole(second.host);
}

/** A fault in one run stops its whole tree, and the tree stays owned while any of it runs. */
export const fanOutFaultFacts: Facts = {
  "a child whose record cannot be written stops its siblings, and the run waits for all of them": async (world) => {
    await faultBeside(world, ["slow", "fast"], ({ runId, phase }) =>
      runId === "r1/fan/fast" && phase === "done" ? "before" : undefined,
    );
  },

  "a child whose journal cannot be opened stops its siblings, and the run waits for all of them": async (world) => {
    await faultBeside(world, ["slow", "fast", "broken"], ({ runId, stepId }) =>
      runId === "r1/fan/broken" && stepId === "start" ? "before" : undefined,
    );
  },

  "a child whose end cannot be written stops its siblings, and is resumed later": async (world) => {
    await faultBeside(world, ["slow", "fast"], ({ runId, stepId }) =>
      runId === "r1/fan/fast" && stepId === "end" ? "before" : undefined,
    );
  },

  "a child that throws stops its siblings, and the run rejects with its error": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("good"), child("bad")], fanOutOptions());
        return completed();
      }
      if (steps.runId.endsWith("/bad")) {
        await gate.reached;
        throw new RangeError("a mistake in the program");
      }
      await steps.run("work", async ({ signal }) => {
        const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        void gate.wait();
        await aborted;
        return null;
      });
      return completed();
    });
    await assert.rejects(task.settled, RangeError);
    assert.equal((await host.get("r1"))?.status, "suspended");
    assert.deepEqual(await recordsOf(host, "r1/fan/good"), ["lifecycle start"]);
  },

  "a `failed` callback that throws stops the other children, and the run rejects with its error": async ({
    connect,
  }) => {
    const { host } = await connect();
    const slow: Slow = { gate: createGate(), reasons: [] };
    const options = {
      ...fanOutOptions("cancel"),
      failed: () => {
        throw new RangeError("a mistake in the program");
      },
    };
    const task = await start(host, async (steps, input) => {
      if (steps.runId !== "r1") return await fanOutWithSlow(slow, [])(steps);
      assert.equal(input, null);
      await steps.runChildren("fan", [child("slow"), child("fast")], options);
      return completed();
    });
    await slow.gate.reached;
    assert.equal(await isSettled(task.settled), false);
    slow.gate.open();
    await assert.rejects(task.settled, RangeError);
  },

  "a fan-out with ambiguous child keys or a repeated name is rejected before anything of it is written": async ({
    connect,
  }) => {
    const { host } = await connect();
    for (const [index, keys] of [["a", "a"], [""], ["a\ud800"]].entries()) {
      const runId = `r${index}`;
      const task = await start(
        host,
        async (steps) =>
          completed(
            statusesOf(
              await steps.runChildren(
                "fan",
                keys.map((key) => child(key)),
                fanOutOptions(),
              ),
            ),
          ),
        { runId },
      );
      await rejects(task.settled, "fork_key", "Validation");
      assert.deepEqual(await recordsOf(host, runId), ["lifecycle start"]);
    }
    const twice = await start(
      host,
      async (steps) => {
        if (steps.runId !== "r9") return completed();
        await steps.runChildren("fan", [child("a")], fanOutOptions());
        return completed(statusesOf(await steps.runChildren("fan", [child("b")], fanOutOptions())));
      },
      { runId: "r9" },
    );
    await rejects(twice.settled, "fork_repeated");
    assert.deepEqual(
      (await host.journal("r9")).map(({ runId }) => runId),
      ["r9", "r9/fan/a"],
    );
    await expectWhole(host, "r9");
  },
};
