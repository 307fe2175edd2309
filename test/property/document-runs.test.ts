import { type JsonObject, SluiceError, type SluiceEvent } from "@sluice/core";
import type { JournalStore } from "@sluice/core/host";
import fc from "fast-check";
import { expect, test } from "vitest";
import { judge } from "../support/document-oracle.ts";
import {
  type DocumentStory,
  type DocumentWorld,
  documentStory,
  documentWorld,
  loadStory,
  placeOf,
} from "../support/document-worlds.ts";
import { eventsOf } from "../support/run-kit.ts";

// Whole runs of random documents, with agents that say anything: judged from their records by the documents alone.

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 120);
const TIMEOUT = 300_000 + 500 * MACHINES;
/** What enough random runs come to. */
const REACHED = [
  ...["enter", "fork", "end", "return", "interrupt", "inside", "granted", "approved"],
  ...["fork completed", "fork failed", "run completed", "run failed", "run cancelled"],
];
const INPUT = { task: "It is to be done." };

async function pipelineOf(story: DocumentStory) {
  const { pipeline, diagnostics } = await loadStory(story);
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
  return pipeline;
}

/** Runs a story to its end, in a new process after each of these numbers of records. */
async function live(story: DocumentStory, world: DocumentWorld, kills: readonly number[] = []) {
  const pipeline = await pipelineOf(story);
  let written = 0;
  let runId: string | undefined;
  for (const last of [...kills, Number.POSITIVE_INFINITY]) {
    const from = written;
    const killed = (store: JournalStore): JournalStore => {
      const count = (): void => {
        if (written - from >= last) throw new SluiceError("Host", "store_gone", "the process has ended");
        written += 1;
      };
      return {
        ...store,
        append: (commit) => {
          count();
          return store.append(commit);
        },
        create: (seed, commit) => {
          count();
          return store.create(seed, commit);
        },
      };
    };
    const process = world.process(killed);
    const handle =
      runId === undefined ? process.start(pipeline, INPUT, { answers: "any" }) : process.resume(pipeline, runId);
    const result = await handle.then(
      (ended) => ended,
      () => undefined,
    );
    await process.close();
    if (written > 0) runId = handle.runId;
    if (result === undefined || result.status === "suspended") continue;
    return { result, written, events: await eventsOf(world.host, handle.runId) };
  }
  throw new Error("the run has no end");
}

function tally(into: Map<string, number>, from: ReadonlyMap<string, number>): void {
  for (const [what, times] of from) into.set(what, (into.get(what) ?? 0) + times);
}

test(
  "whatever agents say, a run moves only along edges of its document that hold and are approved, and calls nothing outside of an envelope without a grant",
  async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(documentStory, async (story) => {
        const world = documentWorld(story);
        const { result, events } = await live(story, world);
        const judged = judge(story, result.runId, events, world.ran);
        expect(judged.faults).toEqual([]);
        tally(seen, judged.seen);
      }),
      { numRuns: MACHINES },
    );
    for (const what of REACHED) expect(seen.get(what) ?? 0, what).toBeGreaterThanOrEqual(Math.floor(MACHINES / 40));
    if (process.env.SLUICE_TEST_MACHINES !== undefined) console.log(Object.fromEntries(seen));
  },
  TIMEOUT,
);

test(
  "a run of a document whose processes end at any record comes to the same end on the same way, and its records are judged the same",
  async () => {
    let resumed = 0;
    await fc.assert(
      fc.asyncProperty(documentStory, fc.array(fc.nat(10_000), { minLength: 1, maxLength: 3 }), async (story, at) => {
        const whole = await live(story, documentWorld(story));
        const world = documentWorld(story);
        const kills = at.map((number) => 1 + (number % Math.max(1, whole.written - 1)));
        const killed = await live(story, world, kills);
        resumed += killed.events.filter(({ type }) => type === "run.resumed").length;
        expect(judge(story, killed.result.runId, killed.events, world.ran).faults).toEqual([]);
        expect(wayOf(killed.events, killed.result.runId)).toEqual(wayOf(whole.events, whole.result.runId));
      }),
      { numRuns: Math.ceil(MACHINES / 2) },
    );
    expect(resumed).toBeGreaterThan(MACHINES / 4);
  },
  TIMEOUT,
);

const WAY: ReadonlySet<string> = new Set([
  ...["attempt.started", "route.decided", "context.changed", "transition.accepted", "transition.rejected"],
  ...["interrupt.started", "interrupt.returned", "call.decided", "call.finished", "fanOut.started", "run.finished"],
]);

/** What a run did, without what depends on who was first: the children of a fork that did not all complete. */
function wayOf(events: readonly SluiceEvent[], rootId: string): Readonly<Record<string, readonly string[]>> {
  const raced = events.flatMap(({ type, runId, data }) => {
    const outcomes = type === "fanOut.joined" && Array.isArray(data.outcomes) ? data.outcomes : [];
    const isRaced = outcomes.length > 1 && outcomes.some((outcome) => Object(outcome).status !== "completed");
    return isRaced ? [`${placeOf(runId)}/${String(data.fanOut)}/`] : [];
  });
  const byPlace = Map.groupBy(events, ({ runId }) => placeOf(runId));
  const ways = [...byPlace].filter(([place]) => !raced.some((prefix) => place.startsWith(prefix)));
  return Object.fromEntries(
    ways.map(([place, all]) => [
      place,
      all.flatMap((event) => (WAY.has(event.type) ? [factsOf(event, rootId, raced.length > 0)] : [])),
    ]),
  );
}

function factsOf({ type, executionId, data }: SluiceEvent, rootId: string, isRaced: boolean): string {
  const { ms: _time, usage: _usage, denied: _calls, head: _head, reason, error, ...rest } = data;
  // The words of a failure tell which branch failed first.
  const words: JsonObject = isRaced ? {} : { reason: reason ?? null, error: error ?? null };
  return [executionId ?? "", type, JSON.stringify({ ...rest, ...words }).replaceAll(rootId, "")].join(" ");
}
