import { isJsonObject, type Json } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import { expect } from "vitest";
import type { Observation } from "./machine-runs.ts";
import type { Asked, Ended, Entered, Expectation, Machine, RunTrace, Sight, TraceEvent } from "./reference-machine.ts";
import { interpret } from "./reference-run.ts";

// What a run showed and what the reference expects, made alike in what only time or Sluice's words decide.

type Trace = Omit<RunTrace, "raced">;

/** What was seen, with the words that Sluice chooses left out, and with time's choices made as the reference makes them. */
function comparable(seen: Observation, expected: Expectation): Observation {
  const runs = new Map<string, Trace>();
  for (const [run, { raced, ...wanted }] of expected.runs) {
    const trace = seen.runs.get(run);
    const like = trace === undefined ? undefined : settled(trace, wanted);
    if (raced && (like === undefined || wasCutShort(like, wanted))) runs.set(run, unmarked(wanted));
    else if (like !== undefined) runs.set(run, like);
  }
  for (const [run, trace] of seen.runs) if (!expected.runs.has(run)) runs.set(run, trace);
  const { end } = seen;
  const isWorded = "message" in expected.end;
  return {
    runs,
    stages: sorted(seen.stages.filter(({ execution }) => !isRaced(execution, expected))),
    end: end.status === "completed" || isWorded ? end : { status: end.status, code: end.code },
  };
}

function wanted(expected: Expectation): Observation {
  const runs = [...expected.runs].map(([run, trace]): [string, Trace] => [run, unmarked(trace)]);
  const stages = expected.stages.filter(({ execution }) => !isRaced(execution, expected));
  return { runs: new Map(runs), stages: sorted(stages.map(({ raced: _raced, ...stage }) => stage)), end: expected.end };
}

/** A trace without the marks of what time decides. */
function unmarked({ events, entered, asked }: Trace): Trace {
  return {
    events: events.map((event): TraceEvent => {
      if (event.type !== "fanOut.joined") return event;
      const { raced: _raced, deciding: _deciding, ...joined } = event;
      return joined;
    }),
    entered: entered.map(({ raced: _raced, ...one }) => one),
    asked: distinct(asked.map(({ raced: _raced, ...one }) => one)),
  };
}

/** A state may ask for the same event again, where nothing changed. */
function distinct(asked: readonly Asked[]): readonly Asked[] {
  return asked.filter((one, index) => !isEvent(one.result) || asked.findIndex((other) => isSame(other, one)) === index);
}

function isEvent(result: Json): boolean {
  return isJsonObject(result) && isJsonObject(result.output) && "event" in result.output;
}

/** Siblings end in any order; the order of the others is that of the root's own events. */
function sorted<T extends { readonly execution: string }>(stages: readonly T[]): readonly T[] {
  return stages.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function isRaced(execution: string, { stages }: Expectation): boolean {
  return stages.some((stage) => stage.raced && stage.execution === execution);
}

function isCancelled(event: TraceEvent): boolean {
  if (event.type === "attempt.finished") return event.outcome === "cancelled";
  // An event is refused then.
  if (event.type === "transition.rejected") return true;
  if (event.type === "route.decided") return event.by === "default" && event.choice === "cancel";
  return event.type === "fanOut.joined" && event.outcomes.some(({ status }) => status === "cancelled");
}

/** Whether a run was cancelled on its way to the end that it would have had. */
function wasCutShort({ events, entered }: Trace, expected: Trace): boolean {
  const whole = unmarked(expected);
  const end = events.at(-1);
  if (end?.type !== "run.finished" || end.status !== "cancelled") return false;
  const before = events.slice(0, -1);
  const parted = before.findIndex((event, index) => !isSame(event, whole.events[index]));
  return (
    (parted === -1 || before.slice(parted).every(isCancelled)) &&
    entered.every((entry, index) => isSame(entry, whole.entered[index]))
  );
}

function settled(trace: Trace, whole: Trace): Trace {
  const events = trace.events.map((event, index): TraceEvent => {
    const like = whole.events[index];
    if (event.type === "run.finished" && like?.type === "run.finished" && !("message" in like)) {
      const { message: _words, ...rest } = event;
      return rest;
    }
    if (event.type !== "fanOut.joined" || like?.type !== "fanOut.joined" || like.raced === undefined) return event;
    const outcomes = event.outcomes.map((outcome, at) =>
      outcome.status === "cancelled" ? { ...outcome, status: like.outcomes[at]?.status ?? "none" } : outcome,
    );
    // One that decides must have ended first.
    const isFirst = event.outcomes.some(
      ({ name, status }, at) => like.deciding?.includes(name) === true && status === like.outcomes[at]?.status,
    );
    return isFirst ? { ...event, outcomes } : event;
  });
  const entered = trace.entered.map((one, index) => settledSight(one, whole.entered[index]));
  const asked = trace.asked.map((one, index) => settledSight(one, whole.asked[index]));
  return { events, entered, asked };
}

/** What code read, where time decided how the children ended. */
function settledSight<T extends Asked | Entered>(one: T, like: T | undefined): T {
  const sight = unworded(one.sight, like?.sight);
  if (like?.raced === undefined) return { ...one, sight };
  const { fork = {}, items = {} } = sight;
  const forks = Object.entries(fork).map(([name, how]) => [
    name,
    how.status === "cancelled" ? like.sight.fork?.[name] : how,
  ]);
  const lists = Object.entries(items).map(([list, ends]) => [
    list,
    ends.map((end, at) => (end.status === "cancelled" ? like.sight.items?.[list]?.[at] : end)),
  ]);
  return {
    ...one,
    sight: {
      ...sight,
      ...(sight.fork === undefined ? {} : { fork: Object.fromEntries(forks) }),
      ...(sight.items === undefined ? {} : { items: Object.fromEntries(lists) }),
    },
  };
}

/** Without the words of Sluice about children that ended before what they should end with. */
function unworded(sight: Sight, like: Sight | undefined): Sight {
  const { fork, items } = sight;
  const plain = <T extends Ended>(end: T, wanted: Ended | undefined): T =>
    "message" in end && wanted !== undefined && "message" in wanted && wanted.message === ""
      ? { ...end, message: "" }
      : end;
  const forks = Object.entries(fork ?? {}).map(([key, end]) => [key, plain(end, like?.fork?.[key])]);
  const lists = Object.entries(items ?? {}).map(([list, ends]) => [
    list,
    ends.map((end, at) => plain(end, like?.items?.[list]?.[at])),
  ]);
  return {
    ...sight,
    ...(fork === undefined ? {} : { fork: Object.fromEntries(forks) }),
    ...(items === undefined ? {} : { items: Object.fromEntries(lists) }),
  };
}

export function expectSame(seen: Observation, machine: Machine, what: string): void {
  const expected = interpret(machine);
  const [there, here] = [comparable(seen, expected), wanted(expected)];
  if (isSame(listed(there), listed(here))) return;
  expect(there, what).toEqual(here);
  expect(textOf(listed(there)), what).toBe(textOf(listed(here)));
}
const listed = ({ runs, ...rest }: Observation): unknown => [[...runs].toSorted(byKey), rest];

function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right) || textOf(left) === textOf(right);
}

/** A value as text that does not depend on the order of keys, which nobody promises. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isObject(part) && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).toSorted(byKey)) : part,
  );
}
function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

export function expectCutShort(seen: Observation, expected: Expectation): void {
  for (const [run, trace] of seen.runs) {
    const whole = expected.runs.get(run);
    if (whole === undefined) throw new Error(`nothing runs as ${run}`);
    const like = settled(trace, whole);
    if (!wasCutShort(like, whole)) expect(like, run).toEqual(unmarked(whole));
  }
}
