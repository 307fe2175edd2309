import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, type Json, type RunEnd, type RunJournal } from "@sluice/core";
import { readEvents, verifyJournal } from "@sluice/core/host";
import { readOutcome } from "@sluice/core/runtime";
import type { Reference, Seen } from "./case.ts";
import { finishedCalls, happenings } from "./journal-facts.ts";
import { processesOf } from "./place.ts";
import type { Lived } from "./process.ts";
import { same } from "./same.ts";

/** What a case left behind. */
interface Left extends Pick<Reference, "accepted"> {
  readonly end: RunEnd;
  readonly journals: readonly RunJournal[];
}

/** The tools that cannot tell whether they acted. */
const CANNOT_TELL: ReadonlySet<string> = new Set(["Bash", "Post"]);

/** No process did what was recorded before it began, nor anything twice. */
export function checkSteps(lives: readonly Lived[], known: readonly ReadonlySet<string>[]): void {
  for (const [at, { deeds }] of lives.entries()) {
    const names = deeds.map(({ deed }) => deed);
    assert.equal(new Set(names).size, names.length, `done twice in one process: ${names.join(", ")}`);
    const again = deeds.filter(({ recorded }) => known[at]?.has(recorded)).map(({ deed }) => deed);
    same(again, [], "done again although it was recorded");
  }
}

/** The run ended as if nobody had disturbed it, but for calls of which nobody can tell. */
export function checkEnd(reference: Reference, seen: Seen, left: Left): void {
  const { place, runId, lives, unfinished } = seen;
  same(place.troubles, [], "people had trouble");
  same(verifyJournal(left.journals).faults, [], "the chain is broken");
  if (place.world === "pipeline") same(processesOf(runId), [], "processes of the run are left");
  same(readdirSync(join(place.folder, "store", "owners")), [], "owners are left");
  same(place.leftovers(), [], "half-written files are left");

  const unknown = unfinished.filter(({ tool }) => CANNOT_TELL.has(tool));
  const lost = new Set(unknown.map(({ tool }) => tool));
  checkCalls(reference, seen, left);
  same(outcomeOf(left.end), withUnknown(outcomeOf(reference.end), lost), "another end");
  same(left.accepted.toSorted(), reference.accepted.toSorted(), "other answers");
  // No event appears twice and none is missing, whatever the run went through.
  same(left.journals.flatMap(happenings), reference.journals.flatMap(happenings), "other events");
  checkDeeds(reference, lives, lost);
  if (place.world === "pipeline") checkEffects(seen, lost);
  if (seen.options.napMs !== undefined) checkNap(left.journals, seen.options.napMs);
}

/** One `outcome_unknown` for each call of which nobody can tell, and none else. */
function checkCalls(reference: Reference, { unfinished }: Seen, { journals }: Left): void {
  const calls = finishedCalls(journals);
  const expected = finishedCalls(reference.journals);
  same(calls.map(({ callId }) => callId).toSorted(), expected.map(({ callId }) => callId).toSorted(), "other calls");
  const begun = new Set(unfinished.map(({ callId }) => callId));
  for (const { tool, callId, outcome } of calls) {
    const was = expected.find((call) => call.callId === callId)?.outcome;
    if (!begun.has(callId)) assert.equal(outcome, was, `${tool} ${callId}`);
    else if (CANNOT_TELL.has(tool)) assert.equal(outcome, "outcome_unknown", `${tool} ${callId}`);
    else assert.ok(outcome === "recovered" || outcome === was, `${tool} ${callId} is ${outcome}`);
  }
}

/** Everything that an undisturbed run does was done, nothing else, and every model was asked with the same words. */
function checkDeeds(reference: Reference, lives: readonly Lived[], lost: ReadonlySet<string>): void {
  const deeds = lives.flatMap((life) => life.deeds);
  const done = new Set(deeds.map(({ deed }) => deed));
  const missing = reference.deeds
    .map(({ deed }) => deed)
    // Who was answered before anybody was asked is not asked; a call that is given up may not have begun.
    .filter((deed) => !done.has(deed) && !deed.startsWith("asked about ") && !lost.has(deed.split(" ", 1)[0] ?? ""));
  same(missing, [], "never done");
  for (const { deed, prompt } of deeds) {
    const usual = reference.deeds.find((one) => one.deed === deed);
    if (deed.startsWith("asked about ")) continue;
    assert.ok(usual !== undefined, `an undisturbed run never does this: ${deed}`);
    const words = prompt?.map((part, at) => (/ (?:recovered|unknown)$/.test(part) ? usual.prompt?.[at] : part));
    same(words, usual.prompt, `${deed} was asked with other words`);
  }
}

/** What is in the workspace at the end. */
function checkEffects({ place }: Seen, lost: ReadonlySet<string>): void {
  same(place.file("src/a.txt"), "hello, world\nentries\n- one\n- two\n", "another src/a.txt");
  same(place.file("src/b.txt"), "one, two\n", "another src/b.txt");
  same(place.file("notes.md"), "Two entries.\n", "other notes");
  same(place.file("denied.log"), undefined, "what was denied ran");
  assert.match(place.file("ledger.txt") ?? "", /^[0-9a-f]{32}\n$/, "the entry is there once");
  // A process may die between making a file and writing to it.
  const posts = place.file("posts.log") ?? "";
  assert.ok(posts === "out\n" || (posts === "" && lost.has("Post")), `sent: ${posts}`);
  const lint = place.file("lint.log") ?? "";
  if (lost.has("Bash")) assert.ok(["", "began\n", "began\nended\n"].includes(lint), lint);
  else same(lint, "began\nended\n", "another lint.log");
}

/** A sleep is as long as it was meant to be, whichever process ends it. */
function checkNap(journals: readonly RunJournal[], napMs: number): void {
  const [before, after] = ["now", "sleep"].map((name) => {
    const [main] = journals;
    const step = main?.records.findIndex(({ stepId }) => stepId === `draft#1/a1/precondition/1/${name}`) ?? -1;
    return main?.records[name === "now" ? step : step + 1];
  });
  const from = Number(before?.value);
  const until = Number(after && readEvents("", after)[0]?.at);
  assert.ok(until - from >= napMs, `it slept ${until - from} ms of ${napMs}`);
}

/** An undisturbed run comes to just this. */
export function checkOutput(end: RunEnd, output: Json): void {
  same(readOutcome(end).output ?? end.value, output, "an undisturbed run comes to something else");
}

function outcomeOf(end: RunEnd): Json {
  const plain: Json = JSON.parse(JSON.stringify(readOutcome(end) ?? end));
  return comparable(plain);
}

/** Without what no two runs share: ids and times. */
function comparable(value: Json): Json {
  if (Array.isArray(value)) return value.map(comparable);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== "runId" && key !== "ms");
  return Object.fromEntries(kept.map(([key, one]) => [key, comparable(one)]));
}

/** The end that the model gives a run when these calls are of unknown outcome. */
function withUnknown(value: Json, lost: ReadonlySet<string>): Json {
  if (Array.isArray(value)) return value.map((one) => withUnknown(one, lost));
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withUnknown(one, lost)]));
  if (typeof value !== "string") return value;
  const [tool = ""] = value.split(" ", 1);
  return lost.has(tool) && value === `${tool} ok` ? `${tool} unknown` : value;
}
