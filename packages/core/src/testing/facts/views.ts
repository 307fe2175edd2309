import assert from "node:assert/strict";
import type { ProgramEnd, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  isSettled,
  rejects,
  start,
  stepsOf,
  turns,
  until,
  untilAsked,
} from "../world.ts";

async function askTwice(steps: StepRunner): Promise<ProgramEnd> {
  if (steps.runId === "r1") {
    await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
    return completed();
  }
  await ask(steps, `${steps.runId.at(-1)}1`);
  await ask(steps, `${steps.runId.at(-1)}2`);
  return completed();
}
const answer = (requestId: string) => ({ name: `request/${requestId}`, payload: "yes", by: "test", digest: "d1" });

/** A host may return copies or frozen values. */
function tryToChange(value: unknown): void {
  try {
    Object.assign(Object(value), { list: [2] });
  } catch (thrown) {
    assert.ok(thrown instanceof TypeError);
  }
}

/** Queries about runs, from the owning process and from any other. */
export const viewFacts: Facts = {
  "runs are listed newest first, without children; get finds children too": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    for (const runId of ["ra", "rb", "rc"]) {
      clock.advance(1_000);
      const task = await start(
        first.host,
        async (steps) => {
          if (steps.runId === "rb") await steps.runChildren("fan", [child("x", { of: "x" })], fanOutOptions());
          return steps.runId === "rc" ? failed("why") : completed(steps.runId);
        },
        { runId, input: { id: runId } },
      );
      await endOf(task);
    }
    const waiting = await start(
      first.host,
      async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null),
      { runId: "rd" },
    );
    const listed = await second.host.list();
    assert.deepEqual(
      listed.map(({ runId, status, parentId }) => [runId, status, parentId]),
      [
        ["rd", "running", undefined],
        ["rc", "failed", undefined],
        ["rb", "completed", undefined],
        ["ra", "completed", undefined],
      ],
    );
    assert.deepEqual(listed[2]?.input, { id: "rb" });
    assert.deepEqual(listed[1]?.end, { status: "failed", value: "why" });
    assert.equal(listed[1]?.createdAt, clock.now());
    assert.equal(typeof listed[0]?.owner, "string");
    assert.deepEqual(await second.host.get("rb"), listed[2]);
    const inner = await second.host.get("rb/fan/x");
    assert.deepEqual([inner?.parentId, inner?.status, inner?.input], ["rb", "completed", { of: "x" }]);
    const [journal] = await second.host.journal("rb");
    assert.deepEqual([listed[2]?.records, listed[2]?.head], [journal?.records.length, journal?.records.at(-1)?.hash]);
    assert.equal(await second.host.get("re"), undefined);
    assert.deepEqual(await second.host.journal("re"), []);
    await first.host.signal("rd", { name: "go", payload: null, by: "test" });
    await endOf(waiting);
  },

  "a reader that changes a returned value does not change the run": async ({ connect }) => {
    const { host } = await connect();
    await endOf(await start(host, async () => completed({ list: [1] }), { input: { list: [1] } }));
    const run = await host.get("r1");
    for (const value of [run?.input, run?.end?.value, (await host.result("r1")).value]) tryToChange(value);
    assert.deepEqual((await host.get("r1"))?.input, { list: [1] });
    assert.deepEqual((await host.result("r1")).value, { list: [1] });
    await expectWhole(host);
  },

  "requests open and close with their records, are listed oldest first and include those of children": async ({
    connect,
    clock,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, askTwice);
    await untilAsked(second.host, 2);
    const ids = async (runId?: string): Promise<readonly string[]> =>
      (await second.host.requests(runId)).map(({ requestId }) => requestId);
    assert.deepEqual([...(await ids())].sort(), ["a1", "b1"]);
    assert.deepEqual(await ids("r1/fan/a"), ["a1"]);
    assert.deepEqual(await ids("r2"), []);
    const [request] = await second.host.requests("r1/fan/a");
    assert.deepEqual(request, {
      requestId: "a1",
      runId: "r1/fan/a",
      kind: "askUser",
      digest: "d1",
      body: { question: "a1" },
      openedAt: clock.now(),
    });
    clock.advance(1_000);
    await second.host.signal("r1/fan/a", answer("a1"));
    await until(second.host, async () => (await ids("r1/fan/a")).includes("a2"));
    // The record of the answer closes the request.
    assert.deepEqual(await ids("r1"), ["b1", "a2"]);
    assert.deepEqual((await stepsOf(second.host, "r1/fan/a")).slice(0, 4), [
      "open ask/a1",
      "done ask/a1",
      "done wait/request/a1",
      "done answered/a1",
    ]);
    for (const [runId, requestId] of [
      ["a", "a2"],
      ["b", "b1"],
      ["b", "b2"],
    ] as const) {
      await until(second.host, async () => (await ids(`r1/fan/${runId}`)).includes(requestId));
      await second.host.signal(`r1/fan/${runId}`, answer(requestId));
    }
    await endOf(task);
    assert.deepEqual(await ids(), []);
  },

  "a run that ended has no open requests, also after a failure": async ({ connect }) => {
    const { host } = await connect();
    const data = { requestId: "q1", kind: "grantStageTool", digest: "d1", body: {} };
    const task = await start(host, async (steps) => {
      await steps.run("ask", () => null, { open: { events: [{ type: "grant.requested", data }] } });
      await steps.waitForSignal("go");
      return failed();
    });
    await untilAsked(host);
    await host.signal("r1", { name: "go", payload: null, by: "test" });
    await endOf(task);
    assert.deepEqual(await host.requests(), []);
  },

  "events can be read from after any event": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      for (let n = 0; n < 3; n += 1) {
        await steps.run(`step/${n}`, ({ event }) => {
          for (let part = 0; part < 2; part += 1) event({ type: "turn.started", data: { turn: n, part } });
          return null;
        });
      }
      return completed();
    });
    await endOf(task);
    const all = await eventsOf(host);
    assert.equal(all.length, 8);
    for (const [index, { id }] of all.entries()) {
      assert.deepEqual(await eventsOf(host, "r1", { after: id }), all.slice(index + 1), id);
    }
    await rejects(eventsOf(host, "r1", { after: "nonsense" }), "event_id_invalid", "Validation");
    await rejects(eventsOf(host, "r9"), "run_unknown", "Session");
  },

  "any host can read the committed records of a run, from any index": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, askTwice);
    await untilAsked(first.host, 2);
    assert.deepEqual(
      (await second.host.records("r1")).map(({ phase, stepId }) => `${phase} ${stepId}`),
      ["lifecycle start", "open fan"],
    );
    for (const requestId of ["a1", "b1", "a2", "b2"]) {
      await until(second.host, async () => (await second.host.requests()).some((each) => each.requestId === requestId));
      await second.host.signal(`r1/fan/${requestId.charAt(0)}`, answer(requestId));
    }
    await endOf(task);
    for (const { runId, records } of await first.host.journal("r1")) {
      assert.notEqual(records.length, 0);
      for (let from = 0; from <= records.length; from += 1)
        assert.deepEqual(await second.host.records(runId, from), records.slice(from));
      assert.deepEqual(await second.host.records(runId), records);
      assert.deepEqual(await second.host.records(runId, -1), records);
      assert.deepEqual(await second.host.records(runId, 0, 1), records.slice(0, 1));
      assert.deepEqual(await second.host.records(runId, 1, 2), records.slice(1, 3));
      assert.deepEqual(await second.host.records(runId, 0, 0), []);
    }
    await rejects(second.host.records("r9"), "run_unknown", "Session");
    await rejects(second.host.records("r1/fan", 1), "run_unknown", "Session");
  },

  "a follower receives every event once when it is committed, and ends with the run": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const task = await start(first.host, async (steps) => {
      await gate.passed;
      for (let n = 0; n < 30; n += 1) {
        await steps.run(`step/${n}`, async ({ event }) => {
          event({ type: "turn.started", data: { turn: n } });
          if (n % 7 === 0) await turns(2);
          return null;
        });
      }
      return completed();
    });
    const followers = [first, second].map(({ host }) => eventsOf(host, "r1", { follow: true }));
    await turns();
    gate.open();
    await endOf(task);
    const all = await eventsOf(first.host);
    assert.equal(all.length, 32);
    for (const follower of followers) assert.deepEqual(await follower, all);
  },

  "a follower of a tree receives the events of all its runs, in order for each run, until the root ends": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, askTwice);
    const following = eventsOf(second.host, "r1", { follow: true, children: true });
    for (const [key, requestId] of [
      ["b", "b1"],
      ["a", "a1"],
      ["b", "b2"],
      ["a", "a2"],
    ] as const) {
      await until(second.host, async () => (await second.host.requests()).some((each) => each.requestId === requestId));
      await second.host.signal(`r1/fan/${key}`, answer(requestId));
    }
    await endOf(task);
    const seen = await following;
    assert.equal(new Set(seen.map(({ id }) => id)).size, seen.length);
    for (const runId of ["r1", "r1/fan/a", "r1/fan/b"]) {
      assert.deepEqual(
        seen.filter((event) => event.runId === runId),
        await eventsOf(first.host, runId),
      );
    }
    const within = await eventsOf(second.host, "r1/fan/a", { children: true });
    assert.deepEqual(within, await eventsOf(second.host, "r1/fan/a"));
  },

  "an aborted follower reads the committed events and stops": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null));
    const stop = new AbortController();
    const following = eventsOf(host, "r1", { follow: true, signal: stop.signal });
    assert.equal(await isSettled(following), false);
    await task.suspend("interrupted");
    stop.abort();
    assert.deepEqual(
      (await following).map(({ type }) => type),
      ["run.started", "run.suspended"],
    );
    const late = AbortSignal.abort();
    assert.equal((await eventsOf(host, "r1", { follow: true, signal: late })).length, 2);
  },

  "any host can wait for the end of a run, and abort the wait": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    await rejects(second.host.result("r1"), "run_unknown", "Session");
    const task = await start(first.host, async (steps) =>
      completed((await steps.waitForSignal("go"))?.payload ?? null),
    );
    const results = [first.host.result("r1"), second.host.result("r1")];
    const stop = new AbortController();
    const aborted = second.host.result("r1", { signal: stop.signal });
    stop.abort();
    await rejects(aborted, "wait_cancelled", "Cancellation");
    await rejects(second.host.result("r1", { signal: AbortSignal.abort() }), "wait_cancelled");
    await first.host.signal("r1", { name: "go", payload: "end", by: "test" });
    for (const result of results) assert.deepEqual(await result, { status: "completed", value: "end" });
    await endOf(task);
    assert.deepEqual(await second.host.result("r1"), { status: "completed", value: "end" });
  },

  "a listener is notified of changes by any host until it unsubscribes": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const calls = { subscribed: 0, unsubscribed: 0 };
    const unsubscribe = second.host.onChange(() => {
      calls.subscribed += 1;
    });
    const unsubscribeEarly = second.host.onChange(() => {
      calls.unsubscribed += 1;
    });
    unsubscribeEarly();
    unsubscribeEarly();
    await endOf(await start(first.host, async () => completed()));
    await until(second.host, async () => calls.subscribed > 0);
    assert.equal(calls.unsubscribed, 0);
    unsubscribe();
  },
};
