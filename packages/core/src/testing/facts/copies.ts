import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { EventDraft } from "../../journal/events.ts";
import type { ProgramEnd, RunCopy, RunHost, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  statusesOf,
  stepsOf,
  untilAsked,
} from "../world.ts";

const begun: readonly EventDraft[] = [{ type: "run.started", data: { pipeline: "conformance" } }];
const from = { of: "r1", execution: "there", head: "0".repeat(64), records: 0 };
const forked: readonly EventDraft[] = [{ type: "run.forked", data: from }];

/** The request for a copy of `r1` up to the first record of a step. */
async function copyBefore(host: RunHost, step: string, more: Partial<RunCopy> = {}): Promise<RunCopy> {
  const of = more.of ?? "r1";
  const records = await recordsOf(host, of);
  const before = records.findIndex((record) => record.endsWith(` ${step}`));
  assert.notEqual(before, -1, `${of} has no step ${step}`);
  return { runId: "r2", of, before, started: begun, forked, ...more };
}

/** A run whose step values name the run that executed them. */
function counting(names: readonly string[], ran: string[]): RunProgram {
  return async (steps) => {
    const values: Json[] = [];
    for (const name of names)
      values.push(
        await steps.run(name, () => {
          ran.push(`${steps.runId} ${name}`);
          return `${name} of ${steps.runId}`;
        }),
      );
    return completed(values);
  };
}

/** A fan-out whose first child has a fan-out too; `ran` collects the run of each executed step. */
function nestedFanOut(ran: string[], bad?: string): RunProgram {
  return async (steps): Promise<ProgramEnd> => {
    const [, , key, , deep] = steps.runId.split("/");
    const work = (name: string): Promise<string> =>
      steps.run(name, () => {
        ran.push(steps.runId);
        return name;
      });
    if (deep !== undefined) return completed(await work("deep"));
    if (key !== undefined) {
      if (key === "a") await steps.runChildren("deep", [child("x")], fanOutOptions());
      const value = await work(key);
      return key === bad ? failed(value) : completed(value);
    }
    const ends = await steps.runChildren("fan", [child("a"), child("b"), child("c")], fanOutOptions());
    return completed([statusesOf(ends), await work("last")]);
  };
}

/** A copy is a new run that starts with recorded steps of another. */
export const copyFacts: Facts = {
  "a copy reuses the records before its copy point, runs the later steps, and leaves the original unchanged": async ({
    connect,
  }) => {
    const { host } = await connect();
    const ran: string[] = [];
    const program = counting(["one", "two", "three"], ran);
    await endOf(await start(host, program, { input: { task: "x" } }));
    const before = await host.journal("r1");
    await host.copy(await copyBefore(host, "three"));
    assert.equal((await host.get("r2"))?.status, "suspended");
    assert.deepEqual((await host.get("r2"))?.input, { task: "x" });
    const end = await endOf(await host.resume("r2", program));
    assert.deepEqual(end.value, ["one of r1", "two of r1", "three of r2"]);
    assert.deepEqual(ran, ["r1 one", "r1 two", "r1 three", "r2 three"]);
    assert.deepEqual(await recordsOf(host, "r2"), [
      "lifecycle start",
      "done one",
      "done two",
      "lifecycle forked",
      "lifecycle resume",
      "done three",
      "lifecycle end",
    ]);
    assert.deepEqual(await host.journal("r1"), before);
    await expectWhole(host, "r2");
    assert.deepEqual(
      (await host.list()).map(({ runId }) => runId),
      ["r2", "r1"],
    );
  },

  "cancelled, failed and suspended runs can be copied, and so can copies": async ({ connect }) => {
    const { host } = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await steps.run("one", () => steps.runId);
      const answer = await ask(steps, "q");
      return failed(answer?.payload ?? null);
    };
    const task = await start(host, program);
    await untilAsked(host);
    await task.suspend("waiting");
    await host.copy(await copyBefore(host, "ask/q"));
    await host.cancel("r1", "enough", "test");
    await host.copy(await copyBefore(host, "ask/q", { runId: "r3" }));
    const third = await host.resume("r3", program);
    await untilAsked(host);
    await host.signal("r3", { name: "request/q", payload: 3, by: "test" });
    assert.deepEqual(await endOf(third), { status: "failed", value: 3 });
    await host.copy(await copyBefore(host, "ask/q", { runId: "r4", of: "r3" }));
    for (const runId of ["r2", "r3", "r4"]) await expectWhole(host, runId);
    const copies = (await eventsOf(host, "r4")).filter(({ type }) => type === "run.forked");
    assert.equal(copies.length, 2);
  },

  "the children of a joined fan-out are copied with all their descendants, each bound by its new head": async ({
    connect,
  }) => {
    const { host } = await connect();
    const ran: string[] = [];
    await endOf(await start(host, nestedFanOut(ran, "b")));
    await host.copy(await copyBefore(host, "last"));
    ran.length = 0;
    const end = await endOf(await host.resume("r2", nestedFanOut(ran, "b")));
    assert.deepEqual(end.value, [{ a: "completed", b: "failed", c: "completed" }, "last"]);
    assert.deepEqual(ran, ["r2"]);
    assert.deepEqual(
      (await host.journal("r2")).map(({ runId, parentId }) => [runId, parentId]),
      [
        ["r2", undefined],
        ["r2/fan/a", "r2"],
        ["r2/fan/a/deep/x", "r2/fan/a"],
        ["r2/fan/b", "r2"],
        ["r2/fan/c", "r2"],
      ],
    );
    await expectWhole(host, "r2");
    await expectWhole(host, "r1");
  },

  "completed children of an open fan-out are copied unless they are named in `again`; the others restart": async ({
    connect,
  }) => {
    const { host } = await connect();
    const ran: string[] = [];
    await endOf(await start(host, nestedFanOut(ran, "b")));
    const at = (await recordsOf(host)).indexOf("open fan") + 1;
    ran.length = 0;
    await host.copy({ runId: "r2", of: "r1", before: at, again: ["c"], started: begun, forked });
    assert.deepEqual(
      (await host.journal("r2")).map(({ runId }) => runId),
      ["r2", "r2/fan/a", "r2/fan/a/deep/x"],
    );
    await expectWhole(host, "r2");
    const end = await endOf(await host.resume("r2", nestedFanOut(ran)));
    assert.deepEqual(end.value, [{ a: "completed", b: "completed", c: "completed" }, "last"]);
    assert.deepEqual(ran.toSorted(), ["r2", "r2/fan/b", "r2/fan/c"]);
    await expectWhole(host, "r2");
  },

  "a signal belongs to the run it was sent to: signals that the original consumed do not count in the copy": async ({
    connect,
  }) => {
    const { host } = await connect();
    const send = (runId: string, payload: Json) => host.signal(runId, { name: "news", payload, by: "test" });
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const first = await steps.waitForSignal("news");
      const all = await steps.takeSignals("more", "news");
      await steps.run("between", async () => {
        if (steps.runId === "r1") await send("r1", 4);
        return null;
      });
      const last = await steps.waitForSignal("news");
      return completed([first?.payload ?? null, all.map(({ payload }) => payload), last?.payload ?? null]);
    };
    const task = await start(host, async (steps) => {
      for (const payload of [1, 2, 3]) await send("r1", payload);
      return await program(steps);
    });
    await endOf(task);
    await host.copy(await copyBefore(host, "between"));
    await send("r2", "mine");
    assert.deepEqual((await endOf(await host.resume("r2", program))).value, [1, [2, 3], "mine"]);
  },

  "a copy that was not stored does not exist; one that was stored but reported as failed can be resumed": async ({
    connect,
  }) => {
    const first = await connect();
    const second = await connect();
    const ran: string[] = [];
    const program = counting(["one", "two"], ran);
    await endOf(await start(first.host, program));
    const copy = await copyBefore(first.host, "two");
    first.failWrites(({ runId }) => (runId === "r2" ? "before" : undefined));
    await rejects(first.host.copy(copy), "store_io");
    assert.equal(await second.host.get("r2"), undefined);
    first.failWrites(({ runId }) => (runId === "r2" ? "after" : undefined));
    await rejects(first.host.copy(copy), "store_io");
    first.failWrites(undefined);
    await first.crash();
    assert.equal((await second.host.get("r2"))?.status, "suspended");
    await endOf(await second.host.resume("r2", program));
    await expectWhole(second.host, "r2");
  },

  "copying an unknown run, a child or a damaged run, or to an existing or invalid id, is rejected": async ({
    connect,
  }) => {
    const { host, tamper } = await connect();
    await endOf(await start(host, nestedFanOut([])));
    const copy = await copyBefore(host, "last");
    await rejects(host.copy({ ...copy, of: "r9" }), "run_unknown");
    await rejects(host.copy({ ...copy, of: "r1/fan/a" }), "run_is_child");
    await rejects(host.copy({ ...copy, runId: "r1" }), "run_exists");
    await rejects(host.copy({ ...copy, runId: "r/2" }), "run_id_invalid");
    tamper((runId, records) =>
      runId === "r1/fan/c" ? records.map((record) => ({ ...record, value: record.value.replace("c", "d") })) : records,
    );
    await rejects(host.copy(copy), "journal_damaged");
    assert.equal(await host.get("r2"), undefined);
  },

  "a copy point inside an open step or request, or outside the run, is rejected": async ({ connect }) => {
    const { host } = await connect();
    const program: RunProgram = async (steps) => {
      await steps.run("slow", () => null, { open: { events: [] } });
      return completed((await ask(steps, "q"))?.payload ?? null);
    };
    const task = await start(host, program);
    await untilAsked(host);
    await host.signal("r1", { name: "request/q", payload: 1, by: "test" });
    await endOf(task);
    const records = await recordsOf(host);
    const copyAt = (before: number): RunCopy => ({ runId: "r2", of: "r1", before, started: begun, forked });
    await rejects(host.copy(copyAt(0)), "copy_point");
    for (const [index, record] of records.entries())
      if (record !== "lifecycle start") {
        const asked = records.indexOf("open ask/q");
        const answered = records.indexOf("done answered/q");
        const inStep = record === "done slow";
        const isOpen = inStep || (index > asked && index <= answered);
        const copied = host.copy({ ...copyAt(index), runId: `r2-${index}` });
        if (isOpen) await rejects(copied, "copy_point");
        else await copied;
      }
    await rejects(host.copy(copyAt(records.length)), "copy_point");
    await rejects(host.copy(copyAt(records.length + 5)), "copy_point");
  },

  "a run that was closed without an owner can be copied, and the copy's journal verifies": async ({ connect }) => {
    const first = await connect();
    const program: RunProgram = async (steps) => {
      if (steps.runId.split("/").length === 3) await steps.runChildren("deep", [child("x")], fanOutOptions());
      else if (steps.runId.includes("/")) await ask(steps, "q");
      else await steps.runChildren("fan", [child("a")], fanOutOptions());
      await steps.run("last", () => null);
      return completed();
    };
    const task = await start(first.host, program);
    await untilAsked(first.host);
    await task.suspend("waiting");
    await first.host.cancel("r1", "enough", "test");
    await expectWhole(first.host, "r1");
    const at = (await recordsOf(first.host)).indexOf("open fan") + 1;
    await first.host.copy({ runId: "r2", of: "r1", before: at, started: begun, forked });
    // The child did not complete, so it restarts.
    const again = await first.host.resume("r2", program);
    const [request] = await untilAsked(first.host);
    assert.equal(request?.runId, "r2/fan/a/deep/x");
    await first.host.signal(request?.runId ?? "", { name: "request/q", payload: null, by: "test" });
    assert.equal((await endOf(again)).status, "completed");
    await expectWhole(first.host, "r2");
    assert.deepEqual((await stepsOf(first.host, "r2")).at(-1), "done last");
  },
};
