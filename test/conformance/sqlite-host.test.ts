import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunHost } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { nodeArguments } from "../support/sqlite-process.ts";
import { type Input, program } from "../support/sqlite-program.ts";
import { scratch } from "../support/sqlite-store.ts";

/** A store, a host on it in this process, and the log of what really happened. */
function setUp() {
  const root = scratch();
  const [folder, log] = [join(root, "store"), join(root, "log")];
  const host = (): RunHost => {
    const opened = sqliteHost(folder);
    onTestFinished(() => opened.close());
    return opened;
  };
  const happened = (): string[] => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
  return { folder, log, host, happened };
}

/** A process that works on one run; resolves when it is at work. */
async function worker(folder: string, what: "start" | "resume", runId: string, input?: Input) {
  const child = spawn(process.execPath, nodeArguments("host.ts", folder, what, runId, JSON.stringify(input ?? null)), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  await Promise.race([once(child.stdout, "data"), exited]);
  return { exited, kill: () => child.kill("SIGKILL") };
}

/** Waits until a look at the store says so. */
async function until(host: RunHost, holds: () => Promise<boolean>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      holds().then((yes) => {
        if (!yes) return;
        stop();
        resolve();
      }, reject);
    };
    const stop = host.onChange(look);
    look();
  });
}

async function expectWhole(host: RunHost, runId: string): Promise<void> {
  expect(verifyJournal(await host.journal(runId)).faults).toEqual([]);
}

test("a run whose process is killed in a writing call resumes here: nothing done is repeated, what is unknown stays so", async () => {
  const { folder, log, host, happened } = setUp();
  const first = await worker(folder, "start", "r1", { log, dieIn: "r1/two" });
  await first.exited;
  const here = host();
  expect(await here.get("r1")).toMatchObject({ status: "suspended", suspended: "interrupted" });
  const task = await here.resume("r1", program);
  expect(await task.settled).toEqual({ end: { status: "completed", value: ["done", "outcome_unknown", "done"] } });
  expect(happened()).toEqual(["r1/one", "r1/two", "r1/three"]);
  await expectWhole(here, "r1");
});

test("a run killed inside a fan-out resumes with its children, each from its own journal", async () => {
  const { folder, log, host, happened } = setUp();
  const first = await worker(folder, "start", "r1", { log, fork: true, dieIn: "r1/fan/lint/two" });
  await first.exited;
  const here = host();
  const { settled } = await here.resume("r1", program);
  expect(await settled).toMatchObject({ end: { status: "completed" } });
  const log2 = happened();
  expect(new Set(log2).size).toBe(log2.length);
  expect(log2.filter((line) => line.startsWith("r1/fan/test/"))).toHaveLength(3);
  expect((await here.journal("r1")).map((journal) => journal.runId)).toEqual(["r1", "r1/fan/lint", "r1/fan/test"]);
  await expectWhole(here, "r1");
});

test("a run that waits in another process is answered from here, and its end is seen here", async () => {
  const { folder, log, host } = setUp();
  const here = host();
  const there = await worker(folder, "start", "r1", { log, ask: true });
  await until(here, async () => (await here.requests()).length === 1);
  expect(await here.get("r1")).toMatchObject({ status: "running", owner: expect.stringContaining("process") });
  await expect(here.resume("r1", program)).rejects.toMatchObject({ code: "run_owned" });
  const answer = { name: "request/q1", payload: "yes", digest: "d1", by: "someone" };
  expect(await here.signal("r1", { ...answer, digest: "d2" })).toBe("digest_mismatch");
  expect(await here.signal("r1", answer)).toBe("accepted");
  expect(await here.result("r1")).toMatchObject({
    status: "completed",
    value: ["done", "done", { answer: "yes", by: "someone" }, "done"],
  });
  await there.exited;
  expect(await here.requests()).toEqual([]);
  await expectWhole(here, "r1");
});

test("an answer given while no process lives is there for the one that resumes", async () => {
  const { folder, log, host, happened } = setUp();
  const here = host();
  const first = await worker(folder, "start", "r1", { log, ask: true });
  await until(here, async () => (await here.requests()).length === 1);
  first.kill();
  await first.exited;
  expect(await here.get("r1")).toMatchObject({ status: "suspended", suspended: "waiting" });
  expect(await here.signal("r1", { name: "request/q1", payload: "late", by: "me" })).toBe("accepted");
  const second = await worker(folder, "resume", "r1");
  await second.exited;
  expect(await here.get("r1")).toMatchObject({ status: "completed" });
  expect(happened()).toEqual(["r1/one", "r1/two", "r1/three"]);
  await expectWhole(here, "r1");
});

test("a run is cancelled through its live owner, or taken over from a dead one", async () => {
  const { folder, log, host } = setUp();
  const here = host();
  const live = await worker(folder, "start", "r1", { log, ask: true });
  const dying = await worker(folder, "start", "r2", { log, ask: true });
  await until(here, async () => (await here.requests()).length === 2);
  dying.kill();
  await dying.exited;
  // Its owner may have ended it by the time that this is answered.
  expect(["requested", "cancelled"]).toContain(await here.cancel("r1", "enough", "me"));
  expect(await here.cancel("r2", "enough", "me")).toBe("cancelled");
  expect(await here.result("r1")).toMatchObject({ status: "cancelled" });
  expect(await here.result("r2")).toMatchObject({ status: "cancelled" });
  await live.exited;
  expect(await here.requests()).toEqual([]);
  for (const runId of ["r1", "r2"]) await expectWhole(here, runId);
});

test("the host says which folder tools must keep away from", () => {
  const { folder, host } = setUp();
  expect(host().folder).toBe(folder);
});
