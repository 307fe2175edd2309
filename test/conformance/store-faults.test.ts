// A disk that fails under each single commit of a run: below node:sqlite, so that all of the store and the host is real.
import { existsSync } from "node:fs";
import {
  type Clock,
  callbackInteractor,
  done,
  fanOut,
  field,
  pipeline,
  type RunJournal,
  type SluiceEvent,
  stage,
  systemClock,
} from "@sluice/core";
import { createHost, readEvents, verifyJournal } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import { createSession, type ResolvedModel, type Session, scriptedModel } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { FAULTS, type FaultKind, faultyDisk, type PlannedFault } from "../support/faulty-disk.ts";
import { changed } from "../support/journal.ts";
import { startBareDriver } from "../support/sqlite-process.ts";
import { type TestWorkspace, tempFolder } from "../support/tools.ts";

const said = z.object({ said: z.string() });
const state = (name: string, allowedTools: readonly string[]) =>
  stage({
    prompt: `${name}.`,
    allowedTools: [...allowedTools],
    completionTool: `end_${name}`,
    completionSchema: said,
    turnCap: 3,
  });

/** A granted write, two siblings of which one edits and one runs a command, and a join. */
const work = pipeline({
  id: "work",
  input: z.object({ task: z.string() }),
  stages: {
    plan: state("plan", ["Read"]),
    edit: state("edit", ["Read", "Edit"]),
    run: state("run", ["Bash", "Write"]),
    end: state("end", []),
  },
  initial: "plan",
  next: { plan: () => fanOut(["edit", "run"], { join: "end" }), end: ({ output }) => done(output.said) },
});
const ends = (name: string) => ({ calls: [{ tool: `end_${name}`, input: { said: `${name} ended` } }] });
const SCRIPT = {
  stages: {
    plan: [{ calls: [{ tool: "Write", input: { file_path: "notes.md", content: "granted\n" } }] }, ends("plan")],
    edit: [
      {
        calls: [
          { tool: "Read", input: { file_path: "list.md" } },
          { tool: "Edit", input: { file_path: "list.md", old_string: "- end", new_string: "- one\n- end" } },
        ],
      },
      ends("edit"),
    ],
    run: [{ calls: [{ tool: "Bash", input: { command: "echo ran >> log.txt" } }] }, ends("run")],
    end: [ends("end")],
  },
};

/** What is tried again for five seconds is tried as often, in a fraction of one. */
const impatient: Clock = { now: systemClock.now, after: (ms, fn) => systemClock.after(ms / 40, fn) };

/** A run that stops is given up with its last command, also where that takes longer to end than a host waits for it. */
const patient: Clock = { now: systemClock.now, after: (ms, fn) => systemClock.after(ms * 100, fn) };

/** What is seen from outside of what a run does. */
interface World {
  readonly workspace: TestWorkspace;
  /** Model calls, as `stage/turn`. */
  readonly asked: string[];
  /** Requests a person was shown. */
  readonly shown: string[];
  /** `<run> <step>` of the open records that the store confirmed, in order. */
  readonly confirmed: string[];
  /** What the session said of the people it asks. */
  readonly faults: string[];
  textOf(name: string): string;
}

function world(): World {
  const workspace = tempFolder();
  workspace.put("list.md", "- end\n");
  const textOf = (name: string): string => (existsSync(workspace.path(name)) ? workspace.text(name) : "");
  return { workspace, asked: [], shown: [], confirmed: [], faults: [], textOf };
}

function sessionIn(
  { workspace, asked, shown, confirmed, faults }: World,
  maxParallel: number,
  onAsked: (name: string) => Promise<void> = async () => undefined,
): Session {
  const scripted = scriptedModel(SCRIPT);
  const model: ResolvedModel = {
    ...scripted,
    at: (position) => {
      const at = scripted.at(position);
      const counted: typeof at.doStream = async (call) => {
        const name = `${position.stage}/${position.turn}`;
        asked.push(name);
        await onAsked(name);
        return await at.doStream(call);
      };
      return { ...at, doStream: counted };
    },
  };
  const store = openJournalStore(workspace.path(".sluice/store"), { clock: impatient });
  const noting = changed(store, {
    append: (commit) => {
      const { runId, record } = commit;
      const note = (): void => {
        if (record.phase === "open") confirmed.push(`${runId} ${record.stepId}`);
      };
      const written = store.append(commit);
      return written === undefined ? note() : written.then(note);
    },
  });
  const grants = callbackInteractor("rule", ({ requestId }) => {
    shown.push(requestId);
    return { kind: "approve" };
  });
  return createSession({
    model,
    cwd: workspace.root,
    maxParallel,
    env: { PATH: "/usr/bin:/bin" },
    interactors: [grants],
    onFault: ({ message }) => void faults.push(message),
    // Faults that nobody waits for: a lock that could not be given back.
    host: () => createHost(noting, { clock: patient, onFault: () => undefined }),
  });
}

function eventsIn(journals: readonly RunJournal[]): readonly SluiceEvent[] {
  return journals.flatMap(({ runId, records }) => records.flatMap((record) => readEvents(runId, record)));
}

/** The steps with an open record and no done one, as `<run> <step>`. */
function unfinished(journals: readonly RunJournal[]): readonly string[] {
  return journals.flatMap(({ runId, records }) =>
    records
      .filter(
        ({ phase, ordinal }) =>
          phase === "open" && !records.some((other) => other.phase === "done" && other.ordinal === ordinal),
      )
      .map(({ stepId }) => `${runId} ${stepId}`),
  );
}

/** Every effect had its record before, and none was begun after the fault. */
function expectAnnounced({ asked, confirmed, textOf }: World, sinceFault: number, why: string): void {
  const announced = (pattern: RegExp): number => confirmed.filter((step) => pattern.test(step)).length;
  expect(confirmed.slice(sinceFault), why).toEqual([]);
  for (const name of new Set(asked)) {
    const [stageName, turn] = name.split("/");
    const calls = asked.filter((one) => one === name).length;
    expect(calls, `${why}: ${name}`).toBeLessThanOrEqual(
      announced(new RegExp(`${stageName}#1/a1/turn/${Number(turn) + 1}/model$`)),
    );
  }
  if (textOf("notes.md") !== "") expect(announced(/ plan#1.*\/call/), why).toBe(1);
  if (textOf("list.md") !== "- end\n") expect(announced(/edit#1.*\/call/), why).toBe(1);
  if (textOf("log.txt") !== "") expect(announced(/run#1.*\/call/), why).toBe(1);
}

/** Runs into a fault, and takes the run up when it is gone: by the process that met it, or by the next. */
async function meet(
  fault: PlannedFault,
  { maxParallel, sameProcess }: { readonly maxParallel: number; readonly sameProcess: boolean },
): Promise<"unknown" | "recovered" | "whole" | "over" | "nothing"> {
  const why = JSON.stringify(fault);
  const outside = world();
  let sinceFault = 0;
  let askedThen = 0;
  using disk = faultyDisk(() => {
    sinceFault = outside.confirmed.length;
    askedThen = outside.asked.length;
  });
  disk.fail(fault);
  const first = sessionIn(outside, maxParallel);
  let live = first;
  try {
    const run = first.start(work, { task: "go" });
    const stopped: unknown = await run.then(
      (result) => result,
      (thrown: unknown) => thrown,
    );
    const { code, fix } = FAULTS[fault.kind];
    const message = expect.stringMatching(new RegExp(`journal\\.db.*${fix.source}`));
    // Where an answer was not kept, and the disk is well again, the run is suspended in order.
    if (stopped instanceof Error) expect(stopped, why).toMatchObject({ class: "Host", code, message });
    else expect([stopped, outside.faults], why).toMatchObject([{ status: "suspended" }, [message]]);
    expect(disk.failed, why).toBe(true);
    // A sibling may have got its record just before the fault of the other.
    if (maxParallel === 1) expect(outside.asked.length, why).toBe(askedThen);
    expectAnnounced(outside, sinceFault, why);
    disk.heal();
    if (!sameProcess) {
      await first.close();
      live = sessionIn(outside, maxParallel);
    }
    const { host } = live;
    const left = await host.journal(run.runId);
    if (left.length === 0) {
      expect(outside.asked, why).toEqual([]);
      return "nothing";
    }
    expect(verifyJournal(left).faults, why).toEqual([]);
    const open = unfinished(left);
    const shownBefore = outside.shown.length;
    const answered = eventsIn(left).some(({ type }) => type === "grant.answered");
    const over = (await host.get(run.runId))?.end !== undefined;
    if (over) {
      await expect(live.resume(work, run.runId), why).rejects.toMatchObject({ code: "run_finished" });
      return "over";
    }
    expect(await live.resume(work, run.runId), why).toMatchObject({ status: "completed", output: "end ended" });

    const journals = await host.journal(run.runId);
    expect(verifyJournal(journals).faults, why).toEqual([]);
    expect(outside.textOf("notes.md"), why).toBe("granted\n");
    expect(outside.textOf("list.md"), why).toBe("- one\n- end\n");
    const events = eventsIn(journals);
    expect(
      events.filter(({ type }) => type === "grant.requested"),
      why,
    ).toHaveLength(1);
    if (answered) expect(outside.shown.length, why).toBe(shownBefore);
    const outcomes = events.filter(({ type }) => type === "call.finished").map(({ data }) => field(data, "outcome"));
    const unknown = open.some((step) => /run#1.*\/call/.test(step));
    expect(
      outcomes.filter((outcome) => outcome === "outcome_unknown"),
      why,
    ).toHaveLength(unknown ? 1 : 0);
    // What is not known may have happened or not; what is known happened once.
    expect(["ran\n", ...(unknown ? [""] : [])], why).toContain(outside.textOf("log.txt"));
    for (const name of new Set(outside.asked)) {
      const [stageName, turn] = name.split("/");
      const again = open.some((step) => step.endsWith(`${stageName}#1/a1/turn/${Number(turn) + 1}/model`));
      expect(outside.asked.filter((one) => one === name).length, `${why}: ${name}`).toBeLessThanOrEqual(again ? 2 : 1);
    }
    return unknown ? "unknown" : outcomes.includes("recovered") ? "recovered" : "whole";
  } finally {
    disk.heal();
    await live.close();
    await first.close();
  }
}

/** The commits of a run that meets nothing, from 1. */
async function commitsOfWhole(): Promise<readonly number[]> {
  const outside = world();
  using disk = faultyDisk();
  const live = sessionIn(outside, 1);
  expect(await live.run(work, { task: "go" })).toMatchObject({ status: "completed", output: "end ended" });
  // The last one gives the run up, when it has its end.
  const transactions = disk.transactions - 1;
  await live.close();
  return Array.from({ length: transactions }, (_, index) => index + 1);
}

describe("a lock that another process holds while a run is at work", () => {
  /** A run whose last model call waits until the lock is held. */
  async function locked() {
    const outside = world();
    const locker = await startBareDriver();
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const live = sessionIn(outside, 1, async (name) => {
      if (name !== "end/0") return;
      reached.resolve();
      await released.promise;
    });
    const run = live.start(work, { task: "go" });
    await reached.promise;
    await locker.do("lock", { folder: outside.workspace.path(".sluice/store") });
    released.resolve();
    onTestFinished(() => live.close());
    return { outside, locker, live, run };
  }

  test("is waited for when it is short", async () => {
    const { locker, run } = await locked();
    await locker.do("unlock");
    expect(await run).toMatchObject({ status: "completed" });
  });

  test("stops the run when it is long, which says so and continues when it is gone", async () => {
    const { outside, locker, live, run } = await locked();
    const { code, fix } = FAULTS.locked;
    await expect(run).rejects.toMatchObject({ class: "Host", code, message: expect.stringMatching(fix) });
    await locker.do("unlock");
    expect(await live.resume(work, run.runId)).toMatchObject({ status: "completed", output: "end ended" });
    // What it had said was not kept.
    expect(outside.asked.filter((name) => name === "end/0")).toHaveLength(2);
    expect(verifyJournal(await live.host.journal(run.runId)).faults).toEqual([]);
  });
});

/** A lock is tried again for long: it is the fault of few. */
const KINDS: readonly FaultKind[] = ["write", "full", "fsync", "write", "full", "fsync", "full", "locked"];

/** Meets the fault at each of these commits, one run each, and counts what came of them. */
async function meetAt(
  commits: readonly number[],
  faultAt: (at: number) => PlannedFault,
  maxParallel: number,
): Promise<Record<string, number>> {
  const came: Record<string, number> = {};
  for (const at of commits) {
    const what = await meet(faultAt(at), { maxParallel, sameProcess: at % 3 === 0 });
    came[what] = (came[what] ?? 0) + 1;
  }
  return came;
}

test("a disk that fails from any commit on stops the run before its next effect, says why, and the run continues once it works", async () => {
  const fault = (at: number): PlannedFault => ({ kind: KINDS[at % KINDS.length] ?? "write", at, lasts: true });
  const commits = await commitsOfWhole();
  expect(commits).toHaveLength(44);
  // One sibling after the other: then each commit is the same one every time.
  expect(await meetAt(commits, fault, 1)).toEqual({ nothing: 1, whole: 40, recovered: 2, unknown: 1 });
});

test("a commit that took place and was said to have failed stops the run, with its siblings, too", async () => {
  const commits = await commitsOfWhole();
  const some = commits.filter((at) => at === 1 || at % 2 === 0);
  const came = await meetAt(some, (at) => ({ kind: "fsync", at, lasts: false, kept: true }), 2);
  // Its first record is there to be resumed from, and its last one is its end.
  expect(came).toMatchObject({ over: 1 });
  expect(came.nothing).toBeUndefined();
});
