import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { ProgramEnd, RunHost, StepRunner } from "../../journal/seam.ts";
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
  statusesOf,
  stepsOf,
  type World,
} from "../world.ts";

/** The host of a run that was killed in step `d`, after steps `a`, `b` and `c`. */
async function killedInD({ connect }: World, runId: string): Promise<RunHost> {
  const { host, crash } = await connect();
  const gate = createGate();
  await start(
    host,
    async (steps) => {
      for (const id of ["a", "b", "c"]) await steps.run(id, () => id);
      await steps.run("d", async () => {
        await gate.wait();
        return "d";
      });
      return completed();
    },
    { runId },
  );
  await gate.reached;
  await crash();
  gate.open();
  return (await connect()).host;
}

async function runSteps(steps: StepRunner, ids: readonly string[], calls: string[]): Promise<ProgramEnd> {
  for (const id of ids) {
    await steps.run(id, () => {
      calls.push(id);
      return id;
    });
  }
  return completed([...ids]);
}

/** Recovery returns recorded values and repeats no step. */
export const replayFacts: Facts = {
  "a resumed run gets its recorded values, calls no step function again and continues": async ({ connect, clock }) => {
    const first = await connect();
    const calls: string[] = [];
    const seen: Json[] = [];
    const gate = createGate();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const call = (id: string, fn: () => Json): Promise<Json> =>
        steps.run(id, () => {
          calls.push(id);
          return fn();
        });
      // Impure on purpose: the path of the run depends on values that cannot be computed again.
      const random = await call("random", () => Math.random());
      const at = await steps.now("at");
      const path = await call(`path/${JSON.stringify(random)}`, () => ({ left: Math.random(), at: clock.now() }));
      seen.push([random, at, path]);
      if (seen.length === 1) await gate.wait();
      return completed([random, at, path, await call("last", () => "end")]);
    };
    await start(first.host, program);
    await gate.reached;
    await first.crash();
    clock.advance(5_000);
    const second = await connect();
    const end = await endOf(await second.host.resume("r1", program));
    assert.equal(calls.length, 3);
    assert.deepEqual(seen[1], seen[0]);
    assert.equal(end.status, "completed");
    await expectWhole(second.host);
    gate.open();
  },

  "a resumed run has the input it was started with, even if the caller changed its object since": async ({
    connect,
  }) => {
    const { host } = await connect();
    const input = { list: [1, 2], nested: { text: "a" } };
    const gate = createGate();
    const inputs: Json[] = [];
    const program = async (steps: StepRunner, received: Json): Promise<ProgramEnd> => {
      inputs.push(received);
      await steps.run("one", async () => {
        if (inputs.length === 1) await gate.wait();
        return null;
      });
      return completed();
    };
    const task = await start(host, program, { input });
    input.list.push(3);
    input.nested.text = "changed";
    await gate.reached;
    const suspended = task.suspend("interrupted");
    gate.open();
    await suspended;
    await endOf(await host.resume("r1", program));
    assert.deepEqual(inputs[1], { list: [1, 2], nested: { text: "a" } });
    assert.deepEqual((await host.get("r1"))?.input, { list: [1, 2], nested: { text: "a" } });
    await expectWhole(host);
  },

  "a program whose steps differ from the recorded ones is rejected: nothing is run or written": async (world) => {
    const changes: Record<string, readonly string[]> = {
      changed: ["a", "x", "c", "d"],
      inserted: ["a", "x", "b", "c", "d"],
      insertedFirst: ["x", "a", "b", "c", "d"],
      insertedLast: ["a", "b", "c", "d", "x"],
      removed: ["a", "c", "d"],
      removedFirst: ["b", "c", "d"],
      removedLast: ["a", "b"],
      reordered: ["b", "a", "c", "d"],
      none: [],
    };
    for (const [name, ids] of Object.entries(changes)) {
      const host = await killedInD(world, name);
      const calls: string[] = [];
      const task = await host.resume(name, (steps) => runSteps(steps, ids, calls));
      if (name === "insertedLast") {
        // Steps after the last record are free, so an added last step is not a mismatch.
        assert.equal((await endOf(task)).status, "completed");
        continue;
      }
      await rejects(task.settled, "journal_mismatch", "Host");
      assert.deepEqual(calls, [], name);
      assert.deepEqual(await stepsOf(host, name), ["done a", "done b", "done c"], name);
      assert.equal((await host.get(name))?.status, "suspended");
      const again = await host.resume(name, (steps) => runSteps(steps, ["a", "b", "c", "d"], calls));
      assert.equal((await endOf(again)).status, "completed");
      assert.deepEqual(calls, ["d"], name);
      await expectWhole(host, name);
    }
  },

  "a program that catches the mismatch still does not end its run": async (world) => {
    const host = await killedInD(world, "r1");
    const task = await host.resume("r1", async (steps) => {
      await rejects(
        steps.run("other", () => null),
        "journal_mismatch",
      );
      await rejects(
        steps.run("a", () => assert.fail("called after a mismatch")),
        "journal_mismatch",
      );
      return completed();
    });
    await rejects(task.settled, "journal_mismatch");
    assert.equal((await recordsOf(host)).includes("lifecycle end"), false);
  },

  "a fan-out whose children differ from the recorded ones is rejected": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    await start(first.host, async (steps) => {
      if (steps.runId === "r1")
        return completed(statusesOf(await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions())));
      await gate.wait();
      return completed();
    });
    await gate.reached;
    await first.crash();
    gate.open();
    const { host } = await connect();
    for (const keys of [["a"], ["a", "b", "c"], ["b", "a"], []]) {
      const task = await host.resume("r1", async (steps) => {
        if (steps.runId !== "r1") return assert.fail("a child was run");
        const ends = await steps.runChildren(
          "fan",
          keys.map((key) => child(key)),
          fanOutOptions(),
        );
        return completed(statusesOf(ends));
      });
      await rejects(task.settled, "journal_mismatch", "Host");
    }
    await expectWhole(host);
  },

  "a program receives the recorded form of a value, on the first run as on a resume": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    const seen: Json[] = [];
    const odd = {
      date: new Date(0),
      none: undefined,
      much: Number.POSITIVE_INFINITY,
      list: [undefined, 1],
      deep: { also: new Map([[1, 2]]) },
    };
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      // Values from libraries are often not quite JSON, in spite of their types.
      seen.push(await steps.run("odd", (): Json => Object.assign(Object.create(null), odd)));
      if (seen.length === 1) await gate.wait();
      return completed();
    };
    await start(first.host, program);
    await gate.reached;
    await first.crash();
    gate.open();
    const second = await connect();
    await endOf(await second.host.resume("r1", program));
    assert.deepEqual(seen[0], { date: "1970-01-01T00:00:00.000Z", much: null, list: [null, 1], deep: { also: {} } });
    assert.deepEqual(seen[1], seen[0]);
  },

  "a value that is not JSON stops the run before anything of the step is recorded": async ({ connect }) => {
    const { host } = await connect();
    const loop: { self?: unknown } = {};
    loop.self = loop;
    const values: readonly unknown[] = [undefined, () => 1, Symbol("s"), 1n, loop];
    for (const [index, value] of values.entries()) {
      const runId = `r${index}`;
      const task = await start(host, async (steps) => completed(await steps.run("one", () => asJson(value))), {
        runId,
      });
      await rejects(task.settled, "not_json", "Validation");
      assert.deepEqual(await stepsOf(host, runId), []);
    }
  },
};

/** Passes any value off as JSON to the compiler. */
function asJson(value: unknown): Json {
  const holder: { readonly value: Json } = Object.assign({ value: null }, { value });
  return holder.value;
}
