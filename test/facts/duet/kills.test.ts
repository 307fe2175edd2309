import { done, type Failed, fail, final, pipeline, to } from "@sluice/core";
import { human, poll, replayRun, router, script, scriptedModel, subPipeline, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { factsOf, type RunFacts } from "../../support/killed-runs.ts";
import { type Kill, type LongRunEnd, liveThrough } from "../../support/long-runs.ts";
import { tempFolder } from "../../support/tools.ts";

// A release that takes days: scripts, a poll that is ready at its fourth attempt, a timer, a question, another pipeline and a
// choice of a model. It is killed everywhere. Each command writes a line each time it runs.

const versionOf = z.object({ version: z.number() });
const EFFECTS = ["build", "upload", "announce"];

/** A command that must not run twice. */
const once = (name: string) => script({ command: { shell: `echo ${name} >> done.log; echo '{"version":7}'` } });
/** Whether it has run, for when the process of its command was killed. */
const ran = (name: string) =>
  script({ command: { shell: `grep -c ${name} done.log` }, successCodes: [0, 1], repeat: true });
const wasLost = ({ detail }: Failed): boolean => z.object({ cause: z.literal("lost") }).safeParse(detail).success;

const publish = pipeline({
  id: "publish",
  input: versionOf,
  stages: { upload: once("upload"), uploaded: ran("upload"), settle: timer({ for: "1h" }) },
  initial: "upload",
  next: {
    upload: {
      completed: () => to("settle"),
      failed: (failure) => (wasLost(failure) ? to("uploaded") : fail("not uploaded")),
    },
    uploaded: ({ output }) => (output.exitCode === 0 ? to("settle") : to("upload")),
    settle: (_result, { run }) => done({ published: run.input.version }),
  },
});

const release = pipeline({
  id: "release",
  input: z.object({ task: z.string() }),
  stages: {
    build: once("build"),
    built: ran("build"),
    ready: poll({ command: { shell: "echo poll >> done.log; test $(grep -c poll done.log) -ge 4" }, every: "1h" }),
    soak: timer({ for: "2d" }),
    approve: human({ question: "Publish {{ctx.task}}?", answer: z.object({ approved: z.boolean() }), deadline: "7d" }),
    publish: subPipeline({ pipeline: "publish", of: publish, input: () => ({ version: 7 }) }),
    choose: router({ targets: ["announce", "stop"], prompt: "Announce {{ctx.task}}?" }),
    stop: final("cancelled"),
    announce: once("announce"),
    announced: ran("announce"),
  },
  initial: "build",
  pipelines: { publish },
  next: {
    build: {
      completed: () => to("ready"),
      failed: (failure) => (wasLost(failure) ? to("built") : fail("not built")),
    },
    built: ({ output }) => (output.exitCode === 0 ? to("ready") : to("build")),
    ready: () => to("soak"),
    soak: () => to("approve"),
    approve: ({ output }) => (output.approved ? to("publish") : fail("not approved")),
    publish: () => to("choose"),
    announce: {
      completed: (_result, { upstream }) => done(upstream.publish ?? null),
      failed: (failure) => (wasLost(failure) ? to("announced") : fail("not announced")),
    },
    announced: ({ output }, { upstream }) => (output.exitCode === 0 ? done(upstream.publish ?? null) : to("announce")),
  },
});

interface Lived extends LongRunEnd {
  readonly facts: RunFacts;
  readonly log: readonly string[];
}

async function lived(...kills: readonly Kill[]): Promise<Lived> {
  const { root, text, put } = tempFolder();
  put("done.log", "");
  const model = scriptedModel({
    stages: {
      choose: [
        { calls: [{ tool: "choose", input: { choice: { to: "nowhere" } } }] },
        { calls: [{ tool: "choose", input: { choice: { to: "announce", reason: "it is out" } } }] },
      ],
    },
  });
  const options = { cwd: root, env: { PATH: process.env.PATH }, sandbox: "off", model } as const;
  const answer = { approved: true };
  const end = await liveThrough({ pipeline: release, input: { task: "seven" }, answer, options }, kills);
  const facts = await factsOf(end.host, end.runId, end.result);
  expect(end.processes).toBe(kills.length + 1);
  return { ...end, facts, log: text("done.log").trim().split("\n") };
}

/** How it ended and what it did, which no kill changes. A poll only looks, and may look once more. */
function expectSameEnd({ facts, log }: Lived, where: string): void {
  expect(facts, where).toMatchObject({ status: "completed", output: { published: 7 } });
  expect(
    log.filter((line) => line !== "poll"),
    where,
  ).toEqual(EFFECTS);
}
/** Whether a command was running at the kill. Its state then fails; in a poll, the attempt is repeated. */
function hitCommand({ facts: { events }, log }: Lived): boolean {
  const naps = events.filter((event) => event.startsWith(" ready#1 sleep.started "));
  const looks = log.filter((line) => line === "poll");
  return naps.length < 3 || looks.length > 4 || events.some((event) => / stage\.act .*"failed"/.test(event));
}

/** Kills a run before or after each of its records; how often that hit a command that was running. */
async function killedAtRecords(at: "before record" | "after record"): Promise<number> {
  const whole = await lived();
  let hits = 0;
  // The run does not exist before its first record, and is over after its last.
  const [first, last] = at === "before record" ? [2, whole.records] : [1, whole.records - 1];
  for (let number = first; number <= last; number += 1) {
    const where = `killed ${at} ${number}`;
    const killed = await lived({ at, number });
    expectSameEnd(killed, where);
    if (hitCommand(killed)) hits += 1;
    else expect(killed.facts, where).toEqual(whole.facts);
  }
  return hits;
}

/** Facts without the times that depend on when the run was resumed. */
function timeless({ facts }: Lived): RunFacts {
  const events = facts.events.map((event) => event.replaceAll(/"(?:until|wakeAt)":\d+/g, '"until":0'));
  return { ...facts, events };
}

describe("a release of a week", { timeout: 600_000 }, () => {
  test("waits six times and does everything once", async () => {
    const whole = await lived();
    expectSameEnd(whole, "not killed");
    expect(whole.waits).toBe(6);
    expect(whole.facts.stages).toEqual(
      ["build", "ready", "soak", "approve", "publish", "choose", "announce"].map((state) => `${state}#1 completed`),
    );
  });

  test("is replayed from its journal, of however many processes", async () => {
    for (const kills of [
      [],
      [
        { at: "wait", number: 2 },
        { at: "after record", number: 9 },
      ],
    ] as const) {
      const { host, runId } = await lived(...kills);
      const replayed = await replayRun(release, await host.journal(runId), { env: {} });
      expect(replayed.divergence?.message).toBeUndefined();
    }
  });

  test("comes to the same end after a kill before any record", async () => {
    // The record that ends each of the three scripts. A poll's attempts may be repeated.
    expect(await killedAtRecords("before record")).toBe(3 + 4);
  });

  test("comes to the same end after a kill after any record", async () => {
    // The record that opens each of the three scripts.
    expect(await killedAtRecords("after record")).toBe(3);
  });

  test("comes to the same end after a kill in any wait", async () => {
    const whole = await lived();
    for (let number = 1; number <= whole.waits; number += 1) {
      const killed = await lived({ at: "wait", number });
      expectSameEnd(killed, `killed in wait ${number}`);
      expect(killed.facts).toEqual(whole.facts);
    }
  });

  test("wakes once after it has overslept, and comes to the same end", async () => {
    const whole = await lived();
    for (let number = 1; number <= whole.waits; number += 1) {
      const killed = await lived({ at: "wait", number, lateMs: 3 * 24 * 3_600_000 });
      expectSameEnd(killed, `killed in wait ${number}`);
      expect(timeless(killed)).toEqual(timeless(whole));
    }
  });

  test("comes to the same end in as many processes as it has waits", async () => {
    const whole = await lived();
    const kills = Array.from({ length: whole.waits }, (): Kill => ({ at: "wait", number: 1 }));
    // A process that resumes a sleep waits for it first.
    const killed = await lived(...kills);
    expectSameEnd(killed, "killed in its first wait, six times");
    expect(killed.facts).toEqual(whole.facts);
  });
});
