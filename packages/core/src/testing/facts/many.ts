import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { child, completed, endOf, eventsOf, expectWhole, type Facts, fanOutOptions, start } from "../world.ts";

/** The resources of a host do not grow with the number of finished runs. */
export const manyFacts: Facts = {
  "after a thousand runs no abort listener and no timer remains": async ({ connect, clock }) => {
    const { host } = await connect();
    const shared = new AbortController();
    const signals = new Set<AbortSignal>([shared.signal]);
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => {
      warnings.push(warning);
    };
    process.on("warning", onWarning);
    try {
      for (let n = 0; n < 1_000; n += 1) {
        const runId = `r${n}`;
        const task = await start(
          host,
          async (steps) => {
            // A sample is enough: keeping every signal would keep every run in memory.
            if (n % 100 === 0) signals.add(steps.signal);
            await steps.run("one", async ({ signal }) => {
              if (n % 100 === 0) signals.add(signal);
              return null;
            });
            await steps.waitForSignal("go", { timeoutMs: 60_000 });
            return completed();
          },
          { runId },
        );
        const followed = eventsOf(host, runId, { follow: true, signal: shared.signal });
        const result = host.result(runId, { signal: shared.signal });
        await host.signal(runId, { name: "go", payload: null, by: "test" });
        await Promise.all([endOf(task), followed, result]);
      }
    } finally {
      process.off("warning", onWarning);
    }
    for (const signal of signals) assert.equal(getEventListeners(signal, "abort").length, 0);
    assert.equal(clock.armed(), 0);
    assert.deepEqual(warnings, []);
  },

  "a fan-out of three hundred children joins them all, in order": async ({ connect }) => {
    const { host } = await connect();
    const keys = Array.from({ length: 300 }, (_, index) => `c${index}`);
    const task = await start(host, async (steps) => {
      if (steps.runId !== "r1") {
        await steps.waitForSignal("go", { timeoutMs: 60_000 });
        return completed(steps.runId);
      }
      const ends = await steps.runChildren(
        "fan",
        keys.map((key) => child(key)),
        fanOutOptions(),
      );
      return completed(Object.values(ends).map(({ value }) => value));
    });
    const followed = eventsOf(host, "r1", { follow: true, children: true });
    for (const key of keys.toReversed()) {
      for (;;) {
        const child = await host.get(`r1/fan/${key}`);
        if (child !== undefined) break;
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
      await host.signal(`r1/fan/${key}`, { name: "go", payload: null, by: "test" });
    }
    const end = await endOf(task);
    assert.deepEqual(
      end.value,
      keys.map((key) => `r1/fan/${key}`),
    );
    const events = await followed;
    assert.equal(events.filter(({ type }) => type === "run.finished").length, keys.length + 1);
    await expectWhole(host);
  },
};
