import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock, JournalRecord } from "@sluice/core";
import { systemClock } from "@sluice/core";
import type { Commit, JournalStore } from "@sluice/core/host";
import type { Points } from "./points.ts";

/** A run as places and facts name it: its own id is another in each case. */
export function placeOf(runId: string): string {
  return runId.replace(/^[^/]+/, "main");
}

interface Watched {
  readonly store: JournalStore;
  readonly clock: Clock;
}

/** A store and a clock with a point before and after each commit, in each wait for an answer, and in each sleep. */
export function watched(
  store: JournalStore,
  points: Points,
  onRecord: (runId: string, record: JournalRecord) => void,
): Watched {
  let sleepsNext: string | undefined;
  const around = <T>(what: string, commit: () => Promise<T> | T): Promise<T> | T => {
    points.at(`before ${what}`);
    const after = (done: T): T => {
      points.at(`after ${what}`);
      return done;
    };
    const done = commit();
    // A store that is busy commits later: the places of a run are the same however busy its store is.
    return done instanceof Promise ? done.then(after) : after(done);
  };
  const recorded = <T>(runId: string, record: JournalRecord, commit: () => Promise<T> | T): Promise<T> | T => {
    const { phase, stepId } = record;
    const done = around(`${placeOf(runId)} ${phase} ${stepId}`, commit);
    // A sleep follows the record of the time it counts from, or of the failure that it follows.
    if (/(?:^|\/)now$/.test(stepId) || record.value.includes('"next":{"kind":"retry"'))
      sleepsNext = `${placeOf(runId)} ${stepId}`;
    onRecord(runId, record);
    return done;
  };
  const deadly: JournalStore = {
    ...store,
    create: (run, commit) => recorded(run.runId, commit.record, () => store.create(run, commit)),
    append: (commit: Commit) => recorded(commit.runId, commit.record, () => store.append(commit)),
    claim: (rootId) => around("the claim", () => store.claim(rootId)),
    async signals(runId, name) {
      const come = await store.signals(runId, name);
      if (come.length === 0 && name !== "message") setImmediate(() => points.at(`waits ${placeOf(runId)} ${name}`));
      return come;
    },
  };
  const clock: Clock = {
    now: systemClock.now,
    after(ms, fn) {
      const sleeps = sleepsNext;
      sleepsNext = undefined;
      if (sleeps !== undefined) setImmediate(() => points.at(`sleeps ${sleeps}`));
      return systemClock.after(ms, fn);
    },
  };
  return { store: deadly, clock };
}

/** Once a command has left this file it is at work, which is a point; then it may go on. */
export function letGoOn(workspace: string, file: string, points: Points): void {
  const timer = setInterval(() => {
    if (!existsSync(join(workspace, file))) return;
    clearInterval(timer);
    points.at(`the command of ${file} works`);
    writeFileSync(join(workspace, "go"), "");
  }, 5);
  timer.unref();
}
