import assert from "node:assert/strict";
import type { SluiceEvent } from "../../journal/events.ts";
import { readEvents } from "../../journal/record.ts";
import type { RunHost, RunProgram } from "../../journal/seam.ts";
import { inTreeOrder } from "../../journal/tree-order.ts";
import { fanningOut } from "../programs.ts";
import {
  cancelled,
  child,
  completed,
  endOf,
  eventsOf,
  type Facts,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  until,
} from "../world.ts";

const HOUR = 3_600_000;

function placeIn(events: readonly SluiceEvent[], runId: string, type: string): number {
  const place = events.findIndex((event) => event.runId === runId && event.type === type);
  assert.notEqual(place, -1, `${runId} has no ${type}`);
  return place;
}

/** Every run's events are in their own order, a child's between those that start and join it, and the root's end is the last. */
async function expectOrder(events: readonly SluiceEvent[], host: RunHost, root = "r1"): Promise<void> {
  const runs = await host.tree(root);
  for (const { runId, parentId } of runs) {
    const own = events.flatMap((event, place) => (event.runId === runId ? [place] : []));
    const alone = await eventsOf(host, runId);
    assert.deepEqual(
      own.map((place) => events[place]?.id),
      alone.map(({ id }) => id),
      runId,
    );
    if (parentId === undefined) continue;
    const parent = (types: readonly string[]) => (event: SluiceEvent) =>
      event.runId === parentId && types.includes(event.type);
    const started = events.slice(0, own[0]).findLastIndex(parent(["fanOut.started"]));
    assert.notEqual(started, -1, `${runId} begins before its parent starts it`);
    const joined = events.slice(started).findIndex(parent(["fanOut.joined", "run.finished"]));
    assert.ok(started + joined > (own.at(-1) ?? 0), `${runId} has events after its parent joined it`);
  }
  assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
  const last = events.at(-1);
  assert.deepEqual([last?.runId, last?.type], [root, "run.finished"]);
}

/** Checks the order of some events, each named by its run and type. */
function expectSequence(events: readonly SluiceEvent[], ...sequence: readonly (readonly [string, string])[]): void {
  const places = sequence.map(([runId, type]) => placeIn(events, runId, type));
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
    JSON.stringify(events.map(({ id, type }) => [id, type])),
  );
}

/** Fan-outs below and after each other, whose steps call `during`. */
function fanOuts(during: () => void = () => undefined): RunProgram {
  return async (steps) => {
    const depth = steps.runId.split("/").length;
    const work = (name: string): Promise<null> =>
      steps.run(name, ({ event }) => {
        during();
        event({ type: "turn.started", data: {} });
        return null;
      });
    await work("first");
    if (depth < 5) await steps.runChildren("fan", [child("b"), child("a")], fanOutOptions());
    if (depth === 1) await steps.runChildren("again", [child("c")], fanOutOptions());
    await work("last");
    return completed();
  };
}

/** Two children: `a` ends at once, and `b` has an event before and one after each signal `go` that it receives. */
const oneWaits: RunProgram = fanningOut({
  a: async () => completed(),
  b: async (steps) => {
    for (let turn = 1; turn <= 3; turn += 1) {
      await steps.run(`turn/${turn}`, ({ event }) => {
        event({ type: "turn.started", data: { turn } });
        return null;
      });
      if ((await steps.waitForSignal("go")) === undefined) return cancelled(steps);
    }
    return completed();
  },
});

const ended = async (host: RunHost, runId: string): Promise<boolean> => (await host.get(runId))?.end !== undefined;

/** Waits until `b` of `oneWaits` has begun a turn, and nothing else is to be recorded. */
async function untilTurn(host: RunHost, turn: number, runId = "r1"): Promise<void> {
  await until(host, async () => {
    if (!(await ended(host, `${runId}/fan/a`))) return false;
    return (await recordsOf(host, `${runId}/fan/b`)).includes(`done turn/${turn}`);
  });
}
const go = (host: RunHost) => host.signal("r1/fan/b", { name: "go", payload: null, by: "test" });

/** The order of a tree's events depends on its journals only: not on who reads them, when, or on any clock. */
export const orderFacts: Facts = {
  "a child's events come before the record that joins it and the root's end comes last, whatever the clock does":
    async ({ connect, clock }) => {
      const [first, second] = [await connect(), await connect()];
      const task = await start(
        first.host,
        fanOuts(() => clock.advance(-HOUR)),
      );
      const followers = [first, second].map(({ host }) => eventsOf(host, "r1", { follow: true, children: true }));
      await endOf(task);
      for (const follower of followers) await expectOrder(await follower, second.host);
      const read = await eventsOf(second.host, "r1", { children: true });
      await expectOrder(read, second.host);
      assert.deepEqual(await eventsOf(first.host, "r1", { children: true, follow: true }), read);
      // Siblings that are read together follow each other.
      const siblings = read.flatMap(({ runId }) => /^r1\/fan\/(.)/.exec(runId)?.[1] ?? []);
      assert.equal(siblings.join("").replaceAll(/(.)\1+/g, "$1"), "ba");
    },

  "journals in memory are read in the order in which the host reads them": async ({ connect }) => {
    const { host } = await connect();
    await endOf(await start(host, fanOuts()));
    const events = await eventsOf(host, "r1", { children: true });
    const found: string[] = [];
    for await (const { runId, depth, record } of inTreeOrder(await host.journal("r1"))) {
      assert.equal(depth, (runId.split("/").length - 1) / 2);
      found.push(...readEvents(runId, record).map(({ id }) => id));
    }
    assert.deepEqual(
      found,
      events.map(({ id }) => id),
    );
  },

  "events after an event of a tree come in the same order": async ({ connect }) => {
    const { host } = await connect();
    await endOf(await start(host, fanOuts()));
    const all = await eventsOf(host, "r1", { children: true });
    for (const { id, runId } of all.filter((event) => event.runId === "r1")) {
      const place = all.findIndex((event) => event.id === id);
      const expected = all.filter((event, at) => event.runId !== runId || at > place);
      assert.deepEqual(await eventsOf(host, "r1", { children: true, after: id }), expected, id);
    }
  },

  "the runs of a tree are counted at one moment, parents first": async ({ connect }) => {
    const { host } = await connect();
    await endOf(await start(host, fanOuts()));
    const journals = await host.journal("r1");
    const counted = (runs: readonly { readonly runId: string; readonly parentId?: string | undefined }[]) =>
      runs.map(({ runId, parentId }) => [runId, parentId]);
    assert.deepEqual(counted(await host.tree("r1")), counted(journals));
    assert.deepEqual(
      (await host.tree("r1")).map(({ records }) => records),
      journals.map(({ records }) => records.length),
    );
    assert.deepEqual(
      (await host.tree("r1/fan/a")).map(({ runId }) => runId),
      ["r1/fan/a", "r1/fan/a/fan/b", "r1/fan/a/fan/a"],
    );
    assert.deepEqual(await host.tree("r9"), []);
  },

  "a kill between a child's end and its join keeps the order, for one who follows and for one who reads": async ({
    connect,
    clock,
  }) => {
    const [first, watcher] = [await connect(), await connect()];
    first.failWrites(({ runId, phase }) => (runId === "r1" && phase === "done" ? "before" : undefined));
    const program = fanningOut({ a: async () => completed(), b: async () => completed() });
    const task = await start(first.host, program);
    const following = eventsOf(watcher.host, "r1", { follow: true, children: true });
    await rejects(task.settled, "store_io");
    await first.crash();
    clock.advance(-HOUR);
    const { host } = await connect();
    await endOf(await host.resume("r1", program));
    for (const events of [await following, await eventsOf(host, "r1", { children: true })]) {
      await expectOrder(events, host);
      for (const key of ["a", "b"])
        expectSequence(events, [`r1/fan/${key}`, "run.finished"], ["r1", "run.resumed"], ["r1", "fanOut.joined"]);
    }
  },

  "what a child recorded before a suspension comes before it, and what it recorded after a resume comes after it":
    async ({ connect, clock }) => {
      const [{ host }, watcher] = [await connect(), await connect()];
      let task = await start(host, oneWaits);
      const following = eventsOf(watcher.host, "r1", { follow: true, children: true });
      for (const turn of [1, 2, 3]) {
        await untilTurn(host, turn);
        await task.suspend("interrupted");
        clock.advance(-HOUR);
        task = await host.resume("r1", oneWaits);
        await go(host);
      }
      await endOf(task);
      for (const events of [await following, await eventsOf(host, "r1", { children: true })]) {
        await expectOrder(events, host);
        const shown = events.filter(({ type }) => ["turn.started", "run.suspended", "run.resumed"].includes(type));
        const round = ["turn.started", "run.suspended", "run.resumed"];
        assert.deepEqual(
          shown.map(({ type }) => type),
          [...round, ...round, ...round],
        );
      }
    },

  "a cancel keeps the order, with an owner and without one": async ({ connect }) => {
    for (const owned of [true, false]) {
      const [first, { host }] = [await connect(), await connect()];
      const runId = owned ? "r1" : "r2";
      const task = await start(first.host, oneWaits, { runId });
      const following = eventsOf(host, runId, { follow: true, children: true });
      await untilTurn(host, 1, runId);
      if (!owned) await first.crash();
      await host.cancel(runId, "enough", "me");
      if (owned) await endOf(task);
      for (const events of [await following, await eventsOf(host, runId, { children: true })])
        await expectOrder(events, host, runId);
    }
  },

  "what a fork copied comes before the fork, also from children that were resumed; what it runs again comes after":
    async ({ connect, clock }) => {
      const { host } = await connect();
      const first = await start(host, oneWaits);
      await untilTurn(host, 1);
      await first.suspend("interrupted");
      const second = await host.resume("r1", oneWaits);
      for (let turns = 0; turns < 3; turns += 1) await go(host);
      await endOf(second);
      const before = (await recordsOf(host)).indexOf("open fan") + 1;
      clock.advance(-HOUR);
      const forked = [{ type: "run.forked" as const, data: {} }];
      await host.copy({
        runId: "r2",
        of: "r1",
        before,
        again: ["a"],
        started: [{ type: "run.started", data: {} }],
        forked,
      });
      const copied = await eventsOf(host, "r2", { children: true });
      expectSequence(copied, ["r2", "fanOut.started"], ["r2/fan/b", "run.finished"], ["r2", "run.forked"]);
      const task = await host.resume("r2", oneWaits);
      const following = eventsOf(host, "r2", { follow: true, children: true });
      await endOf(task);
      for (const events of [await following, await eventsOf(host, "r2", { children: true })]) {
        await expectOrder(events, host, "r2");
        expectSequence(
          events,
          ["r2/fan/b", "run.finished"],
          ["r2", "run.forked"],
          ["r2", "run.resumed"],
          ["r2/fan/a", "run.started"],
          ["r2", "fanOut.joined"],
        );
      }
    },
};
