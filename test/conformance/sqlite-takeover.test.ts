// The kernel alone says who owns a run: neither process ids, which each container counts from 1, nor clocks matter.
import { spawnSync } from "node:child_process";
import type { RunHost } from "@sluice/core";
import { createHost, verifyJournal } from "@sluice/core/host";
import { createHandClock } from "@sluice/core/testing";
import { expect, test } from "vitest";
import { completed, endOf, start, waiting } from "../support/journal.ts";
import { startBareDriver } from "../support/sqlite-process.ts";
import { open, scratch } from "../support/sqlite-store.ts";

/** What starts a process that counts process ids from 1, as in a container, and goes when its starter is killed. */
const CONTAINED = ["unshare", "--pid", "--fork", "--kill-child"];
const canContain = process.platform === "linux" && spawnSync("unshare", [...CONTAINED.slice(1), "true"]).status === 0;

test.skipIf(!canContain)(
  "a process in a container (where one may be made) holds its runs by the kernel's lock until it is gone",
  async () => {
    const folder = scratch();
    const contained = await startBareDriver(CONTAINED);
    const opened = await contained.do("open", { folder });
    await contained.do("start", { runId: "r1" });
    expect(opened).toMatchObject({ pid: 1 });
    const store = open(folder);
    expect(await store.run("r1")).toMatchObject({ owner: { live: true, label: "process 1" } });
    expect(() => store.claim("r1")).toThrow(expect.objectContaining({ code: "run_owned" }));
    await contained.kill();
    // The one in the container ends a moment after the one that was killed.
    await expect.poll(async () => (await store.run("r1"))?.owner?.live).toBe(false);

    // The next container counts from 1 again: that there is a process 1 makes the dead owner live for nobody.
    const next = await startBareDriver(CONTAINED);
    await next.do("open", { folder });
    expect(await next.do("claim", { runId: "r1" })).toBe(2);
    expect(await store.run("r1")).toMatchObject({ owner: { live: true, label: "process 1" } });
  },
);

test("a run is resumed by a process whose clock is years behind, keeps its order and its answers, and ends", async () => {
  const folder = scratch();
  const hostAt = (now: number): RunHost => createHost(open(folder), { clock: createHandClock(now) });
  const [ahead, behind] = [hostAt(2_000_000_000_000), hostAt(1_000_000_000_000)];
  const first = await start(ahead, waiting, "r1");
  await first.suspend("interrupted");
  const again = await behind.resume("r1", waiting);
  const later = await start(behind, async () => completed("second"), "r2");
  expect(await endOf(later)).toMatchObject({ value: "second" });
  // Newest first by when they were made, not by what some clock said.
  expect((await ahead.list()).map(({ runId }) => runId)).toEqual(["r2", "r1"]);
  expect(await ahead.signal("r1", { name: "go", payload: "on", by: "ann" })).toBe("accepted");
  expect(await endOf(again)).toEqual({ status: "completed", value: "on" });
  const journals = await ahead.journal("r1");
  expect(verifyJournal(journals).faults).toEqual([]);
});
