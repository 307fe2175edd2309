import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { RunEnd, RunJournal } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { checkEnd, checkOutput, checkSteps } from "./checks.ts";
import { type CallFact, factsOf, unfinishedCalls } from "./journal-facts.ts";
import { openPlace, type Place } from "./place.ts";
import { type Death, NO_POINTS } from "./points.ts";
import { type Deed, type Lived, startLife } from "./process.ts";
import { same } from "./same.ts";
import { WORLDS, type WorldName } from "./worlds.ts";

/** A run that nobody disturbed. */
export interface Reference {
  readonly world: WorldName;
  /** The places its process came to, in order. */
  readonly points: readonly string[];
  readonly deeds: readonly Deed[];
  readonly end: RunEnd;
  readonly journals: readonly RunJournal[];
  readonly accepted: readonly string[];
}

/** How one process of a case dies. */
export type Kill = Death & {
  /** From outside, once it came to so many places: anywhere after that. */
  readonly outside?: number;
};

export interface CaseOptions {
  /** Milliseconds of the run's sleep. */
  readonly napMs?: number;
  /** Takes the run up with another program first, which has to be refused. */
  readonly changed?: boolean;
  /** Takes it up in this process, which is another than the killed one and costs no start. */
  readonly here?: boolean;
}

/** What a case came to. */
export interface Tally {
  readonly kills: number;
  readonly processes: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly unknown: number;
}

/** Where cases happen, and where processes keep what they compiled. */
export interface Ground {
  readonly root: string;
  readonly cache: string;
}

/** Everything that was seen of a case. */
export interface Seen {
  readonly place: Place;
  readonly runId: string;
  readonly lives: readonly Lived[];
  /** Calls that were announced and had no end when a process died. */
  readonly unfinished: readonly CallFact[];
  readonly options: CaseOptions;
}

export async function undisturbed(world: WorldName, ground: Ground): Promise<Reference> {
  const place = openPlace(world, mkdtempSync(join(ground.root, `${world}-`)));
  try {
    const lived = await startLife({ world, folder: place.folder }, ground.cache).over;
    assert.equal(lived.ended, "completed", `an undisturbed run is ${lived.ended ?? lived.refused}: ${lived.why}`);
    const { runId, end, journals } = await endOf(place);
    const { points, deeds } = lived;
    const reference = { world, points, deeds, end, journals, accepted: [...place.accepted] };
    checkOutput(end, WORLDS[world].output);
    checkSteps([lived], [new Set()]);
    checkEnd(reference, { place, runId, lives: [lived], unfinished: [], options: {} }, reference);
    return reference;
  } finally {
    await place.close();
  }
}

/** Kills one process after the other that works on a run, lets the last one end it, and checks what must hold. */
export async function torture(
  reference: Reference,
  kills: readonly Kill[],
  ground: Ground,
  options: CaseOptions = {},
): Promise<Tally> {
  const { world } = reference;
  const place = openPlace(world, mkdtempSync(join(ground.root, `${world}-`)));
  const { folder } = place;
  const nap = options.napMs === undefined ? {} : { napMs: options.napMs };
  const lives: Lived[] = [];
  const known: ReadonlySet<string>[] = [];
  const unfinished = new Map<string, CallFact>();
  const look = async (): Promise<readonly RunJournal[]> => {
    const runId = await place.runId();
    const journals = runId === undefined ? [] : await place.host.journal(runId);
    if (journals.length > 0) same(verifyJournal(journals).faults, [], "the chain is broken");
    return journals;
  };
  try {
    for (const { outside, ...death } of kills) {
      known.push(new Set([...factsOf(await look()), ...place.accepted]));
      const runId = await place.runId();
      if (runId !== undefined && (await place.host.get(runId))?.end !== undefined) break;
      const plan = { world, folder, death, ...nap, ...(runId === undefined ? {} : { runId }) };
      const lived = await startLife(plan, ground.cache, outside).over;
      lives.push(lived);
      assert.equal(lived.refused, undefined, `it could not go on: ${lived.refused}: ${lived.why}`);
      for (const call of unfinishedCalls(await look())) unfinished.set(call.callId, call);
      if (!lived.killed) break;
      await checkSuspended(place);
    }
    if (options.changed === true) await refusesAnother(place, ground);
    known.push(new Set([...factsOf(await look()), ...place.accepted]));
    lives.push(await finish(place, ground, options));
    const { runId, end, journals } = await endOf(place);
    checkSteps(lives, known);
    checkEnd(
      reference,
      { place, runId, lives, unfinished: [...unfinished.values()], options },
      { end, journals, accepted: place.accepted },
    );
    return tallyOf(lives, unfinished.size);
  } finally {
    await place.close();
  }
}

/** The last process: its run ends, or has ended already and is refused. */
async function finish(place: Place, ground: Ground, { here = false, napMs }: CaseOptions): Promise<Lived> {
  const { world, folder } = place;
  const runId = await place.runId();
  const over = runId !== undefined && (await place.host.get(runId))?.end !== undefined;
  const nap = napMs === undefined ? {} : { napMs };
  const lived = here
    ? await inThisProcess(world, folder, runId)
    : await startLife({ world, folder, ...nap, ...(runId === undefined ? {} : { runId }) }, ground.cache).over;
  const how = `the last process came to ${lived.ended ?? lived.refused}: ${lived.why}`;
  if (over) assert.equal(lived.refused, "run_finished", how);
  else assert.equal(lived.ended, "completed", how);
  return lived;
}

async function inThisProcess(world: WorldName, folder: string, runId: string | undefined): Promise<Lived> {
  const points: string[] = [];
  const deeds: Deed[] = [];
  const opened = WORLDS[world].open({
    folder,
    points: {
      ...NO_POINTS,
      deed: (deed, recorded, prompt) =>
        void deeds.push({ deed, recorded, ...(prompt === undefined ? {} : { prompt }) }),
    },
  });
  const lived = { killed: false, points, deeds, refused: undefined, why: "" };
  try {
    return { ...lived, ended: await (runId === undefined ? opened.start() : opened.resume(runId)) };
  } catch (thrown) {
    const refused = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unexpected";
    return { ...lived, ended: undefined, refused, why: String(thrown) };
  } finally {
    await opened.close();
  }
}

/** A killed run waits to be resumed, and says what for. */
async function checkSuspended({ host, runId }: Place): Promise<void> {
  const id = await runId();
  const run = id === undefined ? undefined : await host.get(id);
  if (run === undefined || run.end !== undefined) return;
  assert.equal(run.status, "suspended", "a killed run has a live owner");
}

/** Another program than the one that began must not go on with the run. */
async function refusesAnother(place: Place, { cache }: Ground): Promise<void> {
  const { world, folder } = place;
  const runId = await place.runId();
  if (runId === undefined || (await place.host.get(runId))?.end !== undefined) return;
  // Steps tell a program that is another one by a step it recorded, and before the first there is none.
  const [top] = await place.host.journal(runId);
  if (world === "steps" && top?.records.some(({ stepId }) => stepId === "read") !== true) return;
  const lived = await startLife({ world, folder, runId, changed: true }, cache).over;
  assert.equal(lived.refused, world === "steps" ? "journal_mismatch" : "pipeline_changed", "a changed program went on");
  same(lived.deeds, [], "a changed program did something");
}

export async function endOf({
  host,
  runId,
}: Place): Promise<{ runId: string; end: RunEnd; journals: readonly RunJournal[] }> {
  const id = await runId();
  const run = id === undefined ? undefined : await host.get(id);
  if (id === undefined || run?.end === undefined) throw new Error("the run has no end");
  return { runId: id, end: run.end, journals: await host.journal(id) };
}

function tallyOf(lives: readonly Lived[], unfinished: number): Tally {
  const deeds = lives.flatMap((life) => life.deeds.map(({ deed }) => deed));
  return {
    kills: lives.filter(({ killed }) => killed).length,
    processes: lives.length,
    modelCalls: deeds.filter((deed) => deed.startsWith("model ")).length,
    toolCalls: deeds.filter((deed) => /^(?:Long|Ledger|Post) /.test(deed)).length,
    unknown: unfinished,
  };
}
