import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import { type CaseOptions, type Ground, type Kill, type Reference, type Tally, torture, undisturbed } from "./case.ts";
import { numbersFrom } from "./random.ts";
import type { WorldName } from "./worlds.ts";
import { zombie } from "./zombie.ts";

/** Cases at work at once. */
const LANES = 2;
/** The sleep of a run that is killed in it, in milliseconds: longer than another process takes to resume it. */
const LONG_NAP_MS = 2_500;
/** Of the cases with one kill, every so many-th is resumed with another program first. */
const CHANGED_EACH = 10;

/** One run to torture. */
export interface Case {
  readonly world: WorldName;
  readonly name: string;
  readonly kills: readonly Kill[];
  readonly options?: CaseOptions;
}

export interface Sum extends Tally {
  readonly cases: number;
  readonly failures: readonly string[];
}

/** Everything of one campaign: its folder, and what undisturbed runs are like. */
export interface Campaign extends AsyncDisposable {
  readonly references: Readonly<Record<WorldName, Reference>>;
  /** Tortures until all cases are through, or the first has failed. */
  run(cases: Iterable<Case>, onCase?: (tally: Tally, one: Case) => void): Promise<Sum>;
  /** Fails where a process that was presumed dead can still write. */
  zombie(): Promise<void>;
}

export async function openCampaign(cache?: string): Promise<Campaign> {
  const root = mkdtempSync(join(tmpdir(), "sluice-torture-"));
  const ground: Ground = { root, cache: cache ?? join(root, "cache") };
  const close = async (): Promise<void> => rmSync(root, { recursive: true, force: true });
  try {
    const [pipeline, steps] = [await undisturbed("pipeline", ground), await undisturbed("steps", ground)];
    const references = { pipeline, steps };
    return {
      references,
      run: (cases, onCase) => runAll(references, ground, cases, onCase),
      zombie: () => zombie(steps, ground),
      [Symbol.asyncDispose]: close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function runAll(
  references: Campaign["references"],
  ground: Ground,
  cases: Iterable<Case>,
  onCase: (tally: Tally, one: Case) => void = () => undefined,
): Promise<Sum> {
  const failures: string[] = [];
  let sum = { cases: 0, kills: 0, processes: 0, modelCalls: 0, toolCalls: 0, unknown: 0 };
  const rest = cases[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true && failures.length === 0; next = rest.next()) {
      const one = next.value;
      try {
        const tally = await torture(references[one.world], one.kills, ground, one.options);
        sum = {
          cases: sum.cases + 1,
          kills: sum.kills + tally.kills,
          processes: sum.processes + tally.processes,
          modelCalls: sum.modelCalls + tally.modelCalls,
          toolCalls: sum.toolCalls + tally.toolCalls,
          unknown: sum.unknown + tally.unknown,
        };
        onCase(tally, one);
      } catch (thrown) {
        failures.push(`${one.world}, ${one.name}: ${messageOf(thrown)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return { ...sum, failures };
}

/** A kill at each of these places. */
export function killedAt({ world }: Reference, labels: readonly string[], more: CaseOptions = {}): readonly Case[] {
  return labels.map((label, at) => {
    const options = {
      ...(label.startsWith("sleeps main draft") && label.includes("precondition") ? { napMs: LONG_NAP_MS } : {}),
      ...(at % CHANGED_EACH === 3 ? { changed: true } : {}),
      ...more,
    };
    return { world, name: `killed at "${label}"`, kills: [{ label }], options };
  });
}

/** Killed again and again while it resumes. */
export function killedResuming({ world, points }: Reference): Case {
  const begun = points.find((label) => / begins$|^works main write/.test(label)) ?? "";
  const labels = [
    begun,
    "before the claim",
    "after the claim",
    "before main lifecycle resume",
    "after main lifecycle resume",
  ];
  return { world, name: "killed while it resumes", kills: labels.map((label) => ({ label })) };
}

/** Two or three kills anywhere in a run; one of five from outside, so that it does not hit a place that was thought of. */
export function randomCase(references: Campaign["references"], seed: number): Case {
  const random = numbersFrom(seed);
  const world = random(3) === 0 ? "steps" : "pipeline";
  const { length } = references[world].points;
  const places = Array.from({ length: 2 + random(2) }, () => 1 + random(length)).sort((a, b) => a - b);
  const kills = places.map((place, at): Kill => {
    // A process that resumes a run comes to the places of its claim first.
    const nth = at === 0 ? place : place - (places[at - 1] ?? 0) + 4;
    return random(5) === 0 ? { outside: nth } : { nth };
  });
  return { world, name: `--case ${seed} (${JSON.stringify(kills)})`, kills };
}
