import assert from "node:assert/strict";
import { isSluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { ProgramEnd, RunProgram, SiblingEnd, StepRunner } from "../../journal/seam.ts";
import { fanningOut } from "../programs.ts";
import {
  cancelled,
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  type Gate,
  isSettled,
  recordsOf,
  start,
  statusesOf,
} from "../world.ts";

/** Runs until it is cancelled, and ends only when `ending` opens. */
function slowToEnd(order: string[], running: Gate<void>, aborted: Gate<void>, ending: Gate<void>): RunProgram {
  return async (steps) => {
    await steps.run("work", async ({ signal }) => {
      void running.wait();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      order.push(isSluiceError(signal.reason) ? signal.reason.code : "");
      void aborted.wait();
      await ending.passed;
      return null;
    });
    order.push("ended");
    return cancelled(steps);
  };
}

/** The children of a fan-out are runs: each has a journal, an input and an end. */
export const fanOutFacts: Facts = {
  "each child has its own journal, and the ends are returned in declared order": async ({ connect }) => {
    const { host } = await connect();
    const gates = { first: createGate(), second: createGate() };
    const inputs: Record<string, Json> = {};
    const task = await start(
      host,
      fanningOut({
        c: async (steps, input) => {
          inputs.c = input;
          await gates.second.passed;
          return completed(await steps.run("one", () => "c"));
        },
        a: async (steps, input) => {
          inputs.a = input;
          await gates.first.passed;
          gates.second.open();
          return failed(await steps.run("one", () => "a"));
        },
        b: async (_steps, input) => {
          inputs.b = input;
          gates.first.open();
          return completed("b");
        },
      }),
    );
    assert.deepEqual((await endOf(task)).value, [
      ["c", "completed", "c"],
      ["a", "failed", "a"],
      ["b", "completed", "b"],
    ]);
    assert.deepEqual(inputs, { c: "c", a: "a", b: "b" });
    const journals = await host.journal("r1");
    assert.deepEqual(
      journals.map(({ runId, parentId, records }) => [runId, parentId, records.length]),
      [
        ["r1", undefined, 4],
        ["r1/fan/c", "r1", 3],
        ["r1/fan/a", "r1", 3],
        ["r1/fan/b", "r1", 2],
      ],
    );
    await expectWhole(host);
  },

  "the parent's record holds the end, record count and head of every child": async ({ connect }) => {
    const { host } = await connect();
    await endOf(await start(host, fanningOut({ a: async () => completed(1), b: async () => failed(2) })));
    const [parent, ...children] = await host.journal("r1");
    const join = parent?.records.find((record) => record.phase === "done" && record.stepId === "fan");
    const expected = children.map(({ runId, records, end }): [string, SiblingEnd] => {
      const head = records.at(-1)?.hash ?? "";
      return [runId.split("/").at(-1) ?? "", { ...(end ?? assert.fail()), records: records.length, head }];
    });
    assert.deepEqual(JSON.parse(join?.value ?? ""), Object.fromEntries(expected));
    const events = await eventsOf(host);
    assert.deepEqual(events.find(({ type }) => type === "fanOut.joined")?.data.outcomes, [
      { name: "a", status: "completed", head: expected[0]?.[1].head },
      { name: "b", status: "failed", head: expected[1]?.[1].head },
    ]);
  },

  "children run concurrently, and one may wait for what another does": async ({ connect }) => {
    const { host } = await connect();
    const gates = [createGate(), createGate()];
    const meeting =
      (index: number): RunProgram =>
      async (steps) => {
        await steps.run("meet", async () => {
          gates[index]?.open();
          await gates[1 - index]?.passed;
          return null;
        });
        return completed();
      };
    const end = await endOf(await start(host, fanningOut({ a: meeting(0), b: meeting(1) })));
    assert.equal(end.status, "completed");
  },

  "onFailure cancel: the first failure cancels the others, and the fan-out waits until all have ended": async ({
    connect,
  }) => {
    const { host } = await connect();
    const [gate, aborted, ending] = [createGate(), createGate(), createGate()];
    const order: string[] = [];
    const task = await start(
      host,
      fanningOut(
        {
          slow: slowToEnd(order, gate, aborted, ending),
          bad: async () => {
            await gate.reached;
            return failed("bad");
          },
        },
        "cancel",
      ),
    );
    await gate.reached;
    await aborted.reached;
    assert.equal(await isSettled(task.settled), false);
    ending.open();
    const end = await endOf(task);
    assert.deepEqual(order, ["sibling_failed", "ended"]);
    assert.deepEqual(end.value, [
      ["slow", "cancelled", "cancelled because its sibling bad failed"],
      ["bad", "failed", "bad"],
    ]);
    assert.equal(end.status, "completed");
    await expectWhole(host);
  },

  "onFailure cancel: children that have not started are closed without running their code": async ({ connect }) => {
    const { host } = await connect();
    const keys = Array.from({ length: 80 }, (_, index) => `c${index}`);
    const ran: string[] = [];
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren(
          "fan",
          keys.map((key) => child(key)),
          fanOutOptions("cancel"),
        );
        return completed(statusesOf(ends));
      }
      ran.push(steps.runId);
      if (steps.runId.endsWith("/c0")) return failed();
      await steps.waitForSignal("never");
      return cancelled(steps);
    });
    const { value } = await endOf(task);
    assert.deepEqual(value, Object.fromEntries(keys.map((key, index) => [key, index === 0 ? "failed" : "cancelled"])));
    // A fast host may start some children before the failure; they have an end too.
    for (const { runId, end } of await host.journal("r1")) assert.notEqual(end, undefined, runId);
    await expectWhole(host);
  },

  "onFailure cancel: a completed end that `failed` counts as a failure cancels the others too": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const options = { ...fanOutOptions("cancel"), failed: ({ value }: { readonly value: Json }) => value === "empty" };
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1")
        return completed(statusesOf(await steps.runChildren("fan", [child("a"), child("b")], options)));
      if (steps.runId.endsWith("/a")) {
        await gate.reached;
        return completed("empty");
      }
      void gate.wait();
      await steps.waitForSignal("never");
      return cancelled(steps);
    });
    assert.deepEqual((await endOf(task)).value, { a: "completed", b: "cancelled" });
  },

  "onFailure any: a failure cancels nothing; the first success cancels the others, and all are awaited": async ({
    connect,
  }) => {
    const { host } = await connect();
    const [gate, aborted, ending, failedFirst] = [createGate(), createGate(), createGate(), createGate()];
    const order: string[] = [];
    const task = await start(
      host,
      fanningOut(
        {
          slow: slowToEnd(order, gate, aborted, ending),
          bad: async () => {
            await gate.reached;
            failedFirst.open();
            return failed("bad");
          },
          good: async () => {
            await failedFirst.passed;
            return completed("good");
          },
        },
        "any",
      ),
    );
    await aborted.reached;
    assert.equal(await isSettled(task.settled), false);
    ending.open();
    const end = await endOf(task);
    assert.deepEqual(order, ["sibling_completed", "ended"]);
    assert.deepEqual(end.value, [
      ["slow", "cancelled", "cancelled because its sibling good completed first"],
      ["bad", "failed", "bad"],
      ["good", "completed", "good"],
    ]);
    await expectWhole(host);
  },

  "onFailure settle: a failure does not affect the other children": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(
      host,
      fanningOut({
        bad: async () => {
          gate.open();
          return failed("bad");
        },
        good: async (steps) => {
          await gate.passed;
          return completed(await steps.run("one", () => "good"));
        },
      }),
    );
    assert.deepEqual((await endOf(task)).value, [
      ["bad", "failed", "bad"],
      ["good", "completed", "good"],
    ]);
  },

  "fan-outs nest, and a failure in an inner one does not affect the outer one": async ({ connect }) => {
    const { host } = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const depth = (steps.runId.match(/\/fan\//g) ?? []).length;
      if (depth === 3) return steps.runId.endsWith("b") ? failed() : completed();
      const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions("cancel"));
      return completed(statusesOf(ends));
    };
    const end = await endOf(await start(host, program));
    assert.deepEqual(end.value, { a: "completed", b: "completed" });
    const journals = await host.journal("r1");
    assert.equal(journals.length, 1 + 2 + 4 + 8);
    await expectWhole(host);
  },

  "a key may be any text: each child has a run of its own, whose id names no other run and leaves no folder": async ({
    connect,
  }) => {
    const { host } = await connect();
    const keys = [
      "a",
      "a/b",
      "a%2Fb",
      "..",
      ".",
      "/",
      "%",
      " ",
      "é",
      "__proto__",
      "constructor",
      "10",
      "9",
      "x".repeat(200),
    ];
    const task = await start(host, async (steps, input) => {
      if (steps.runId !== "r1") return completed(input);
      const ends = await steps.runChildren(
        "fan",
        keys.map((key) => child(key)),
        fanOutOptions(),
      );
      return completed(Object.entries(ends).map(([key, { value }]) => [key, value]));
    });
    const { value } = await endOf(task);
    const byKey = (one: Json, other: Json): number => JSON.stringify(one).localeCompare(JSON.stringify(other));
    const wanted: readonly Json[] = keys.map((key) => [key, key]);
    assert.deepEqual(Array.isArray(value) ? value.toSorted(byKey) : value, wanted.toSorted(byKey));
    const ids = (await host.journal("r1")).map(({ runId }) => runId);
    assert.equal(new Set(ids).size, keys.length + 1);
    for (const runId of ids.slice(1)) assert.match(runId, /^r1\/fan\/(?!\.)[\w.%-]+$/);
    await expectWhole(host);
  },

  "a fan-out without children joins at once": async ({ connect }) => {
    const { host } = await connect();
    assert.deepEqual((await endOf(await start(host, fanningOut({})))).value, []);
    assert.deepEqual(await recordsOf(host), ["lifecycle start", "open fan", "done fan", "lifecycle end"]);
    await expectWhole(host);
  },
};
