import { type Campaign, type Case, killedAt, killedResuming, randomCase } from "./campaign.ts";
import type { Reference } from "./case.ts";

/** Of the places around commits, one of so many. */
const COMMITS_EACH = { pipeline: 19, steps: 41 };
const RANDOM = 3;

/** One place in the middle of everything a run can be at work with or wait for. */
const WITHIN = [
  /^sleeps /,
  /^gate draft#1\/a1 precondition/,
  /^model draft 1 try 2 begins/,
  /^model (?:plan 3|lint 0) streams/,
  /^judges plan#1\/a1 t2\.c[01]/,
  /^prompt wrap/,
  /^next /,
  /^Long works/,
  /^(?:Post|Ledger) /,
  /^(?:before|after) rename [13] /,
  /^waits /,
  /^the command /,
  /^after main done long$/,
  /^after main\/fan-1\/docs done docs#1\/a1\/turn\/1\/1\/call$/,
  /^before main done fan-1$/,
  /^works main\/fan\/b\/fan\/b (?:read|write)/,
];

/** What is tortured on each change: a place within each kind of work and wait, some around commits, some random ones. */
export function shortForm(references: Campaign["references"]): readonly Case[] {
  const { pipeline, steps } = references;
  const random = Array.from({ length: RANDOM }, (_, seed) => randomCase(references, seed));
  const once = [steps, pipeline].flatMap((reference) => killedAt(reference, some(reference), { here: true }));
  return [killedResuming(pipeline), ...once, ...random];
}

function some({ world, points }: Reference): readonly string[] {
  const within = points.filter((label) => WITHIN.some((pattern) => pattern.test(label)));
  const around = points.filter((label) => /^(?:before|after) main/.test(label));
  return [...within, ...around.filter((_, at) => at % COMMITS_EACH[world] === 0)];
}
