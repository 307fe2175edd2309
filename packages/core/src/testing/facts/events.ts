import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import { EVENT_TYPES } from "../../journal/events.ts";
import type { LiveChunk, ProgramEnd, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  start,
} from "../world.ts";

const KB = 1024;

/** Text that a store must not change: several planes, a surrogate pair, control characters, quotes. */
const ODD_TEXT = 'ü 🙂 \u0000 \u2028 "quoted" \\ \n\t \ufffd \ud83d\ude42';

/** The events and values in a journal, and the streamed chunks that are not in it. */
export const eventFacts: Facts = {
  "the id of an event consists of its run, the seq of its record and its index in it": async ({ connect, clock }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      clock.advance(5);
      await steps.run(
        "one",
        ({ event }) => {
          event({ type: "call.started", executionId: "plan#1", attempt: 1, data: { callId: "c1" } });
          event({ type: "call.finished", executionId: "plan#1", attempt: 1, data: { callId: "c1" } });
          return null;
        },
        { open: { events: [{ type: "turn.started", data: { turn: 1 } }] } },
      );
      return completed();
    });
    await endOf(task);
    const events = await eventsOf(host);
    const at = clock.now();
    assert.deepEqual(
      events.map(({ id, runId, type }) => [id, runId, type]),
      [
        ["r1/0/0", "r1", "run.started"],
        ["r1/1/0", "r1", "turn.started"],
        ["r1/2/0", "r1", "call.started"],
        ["r1/2/1", "r1", "call.finished"],
        ["r1/3/0", "r1", "run.finished"],
      ],
    );
    assert.deepEqual(
      events.map((event) => event.at),
      [at - 5, at, at, at, at],
    );
    assert.deepEqual(events[2], {
      id: "r1/2/0",
      runId: "r1",
      at,
      type: "call.started",
      executionId: "plan#1",
      attempt: 1,
      data: { callId: "c1" },
    });
  },

  "run.started is the first event of a run and of every child": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      return completed();
    });
    await endOf(task);
    for (const runId of ["r1", "r1/fan/a", "r1/fan/b"]) {
      const [first] = await eventsOf(host, runId);
      assert.deepEqual([first?.id, first?.type], [`${runId}/0/0`, "run.started"]);
    }
  },

  "the events of a step that runs twice are recorded once": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    let calls = 0;
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await steps.run(
        "one",
        async ({ event }) => {
          calls += 1;
          event({ type: "call.started", data: { callId: `c${calls}` } });
          if (calls === 1) await gate.wait();
          event({ type: "call.finished", data: { callId: `c${calls}` } });
          return null;
        },
        { open: { events: [{ type: "turn.started", data: { turn: 1 } }] } },
      );
      return completed();
    };
    await start(first.host, program);
    await gate.reached;
    await first.crash();
    gate.open();
    const second = await connect();
    await endOf(await second.host.resume("r1", program));
    const events = await eventsOf(second.host);
    assert.equal(new Set(events.map((event) => event.id)).size, events.length);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.callId]),
      [
        ["run.started", undefined],
        ["turn.started", undefined],
        ["run.resumed", undefined],
        ["call.started", "c2"],
        ["call.finished", "c2"],
        ["run.finished", undefined],
      ],
    );
  },

  "values of 300 KB and 5 MB are read back unchanged, also by another process": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    const of = (size: number): Json => ({ text: `${ODD_TEXT}${"x".repeat(size)}`, list: [size, ODD_TEXT] });
    const seen: Json[][] = [];
    const program = async (steps: StepRunner, input: Json): Promise<ProgramEnd> => {
      const values = [
        input,
        await steps.run("small", () => of(300 * KB)),
        await steps.run("large", () => of(5 * KB * KB)),
        await steps.run("intent", ({ opened }) => opened?.intent ?? null, {
          open: { events: [], intent: of(300 * KB) },
        }),
      ];
      seen.push(values);
      await steps.run("last", async ({ event }) => {
        event({ type: "call.finished", data: { facts: of(300 * KB) } });
        if (seen.length === 1) await gate.wait();
        return null;
      });
      return completed(of(300 * KB));
    };
    await start(first.host, program, { input: of(300 * KB) });
    await gate.reached;
    await first.crash();
    gate.open();
    const second = await connect();
    const end = await endOf(await second.host.resume("r1", program));
    assert.deepEqual(seen[1], seen[0]);
    assert.deepEqual(seen[1], [of(300 * KB), of(300 * KB), of(5 * KB * KB), of(300 * KB)]);
    assert.deepEqual(end.value, of(300 * KB));
    const facts = (await eventsOf(second.host)).find((event) => event.type === "call.finished")?.data;
    assert.deepEqual(facts, { facts: of(300 * KB) });
    assert.deepEqual((await second.host.get("r1"))?.input, of(300 * KB));
    await expectWhole(second.host);
  },

  "streamed chunks reach the listeners, also those of children, and are never in the journal": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const secret = "only streamed";
    const heard: boolean[] = [];
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") heard.push(steps.heard());
      await gate.passed;
      heard.push(steps.heard());
      if (steps.runId === "r1") {
        steps.emit("text", secret);
        await steps.run("one", () => {
          steps.emit("text", { delta: secret });
          return null;
        });
        await steps.runChildren("fan", [child("a")], fanOutOptions());
      } else steps.emit("text", `${secret} by a child`);
      return completed();
    });
    const chunks: LiveChunk[] = [];
    const stop = task.onLive((chunk) => chunks.push(chunk));
    const ignored: LiveChunk[] = [];
    task.onLive((chunk) => ignored.push(chunk))();
    gate.open();
    await endOf(task);
    stop();
    assert.deepEqual(chunks, [
      { runId: "r1", channel: "text", chunk: secret },
      { runId: "r1", channel: "text", chunk: { delta: secret } },
      { runId: "r1/fan/a", channel: "text", chunk: `${secret} by a child` },
    ]);
    assert.deepEqual(ignored, []);
    assert.deepEqual(heard, [false, true, true]);
    assert.equal(JSON.stringify(await host.journal("r1")).includes(secret), false);
  },

  "text that looks like a secret is redacted in events, and kept in step values": async ({ connect }) => {
    const { host } = await connect();
    const key = `sk-${"a1".repeat(12)}`;
    const task = await start(host, async (steps) => {
      const value = await steps.run("one", ({ event }) => {
        for (const type of EVENT_TYPES) event({ type, data: { facts: { said: `use ${key} now`, password: "short" } } });
        return key;
      });
      return completed(value);
    });
    assert.equal((await endOf(task)).value, key);
    const events = await eventsOf(host);
    assert.equal(events.length, EVENT_TYPES.length + 2);
    const text = JSON.stringify(events);
    assert.equal(text.includes(key), false);
    assert.equal(text.includes("short"), false);
    await expectWhole(host);
  },
};
