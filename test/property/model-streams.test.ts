import type { RunJournal, SluiceEvent } from "@sluice/core";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HostileWorld, hostileWorld, type PlayedStory, type Ran } from "../support/hostile-world.ts";
import { COMPLETION, type RandomStory, type RandomStream, story, TOOLS } from "../support/random-streams.ts";
import { eventsOf } from "../support/run-kit.ts";
import { finish, part } from "../support/stream-model.ts";

const STREAMS = 10_000;
const STORIES = 4_900;
/** Stories in one session; then it is closed, with all that it kept. */
const PER_SESSION = 200;

const strays: string[] = [];
const onStray = (thrown: unknown): void => void strays.push(String(thrown));
beforeAll(() => {
  process.on("unhandledRejection", onStray);
  process.on("warning", onStray);
});
afterAll(() => {
  process.off("unhandledRejection", onStray);
  process.off("warning", onStray);
});

test("10,000 random streams end in a normal outcome, with one result per call and nothing left behind", async () => {
  let played = 0;
  let stories = 0;
  let world: HostileWorld | undefined;
  const statuses = new Set<string>();
  const tools = new Set<string>();
  await fc.assert(
    fc.asyncProperty(story, async (each) => {
      if (stories % PER_SESSION === 0) {
        await world?.live.close();
        world = undefined;
      }
      const here = world ?? hostileWorld(1 + (stories % 2));
      stories += 1;
      // What one story broke must not be taken for the fault of the next.
      world = undefined;
      const end = await here.play(each);
      await judge(here, end);
      world = here;
      played += end.model.played;
      statuses.add(end.status);
      for (const { tool } of end.ran) tools.add(tool);
    }),
    { numRuns: STORIES },
  );
  await world?.live.close();
  expect(played).toBeGreaterThan(STREAMS);
  expect([...statuses].sort()).toEqual(["cancelled", "completed", "failed"]);
  expect([...tools].sort()).toEqual([TOOLS.write, TOOLS.read, TOOLS.outside].sort());
});

const MiB = 1024 * 1024;
const text = (length: number): string => `{"text":"${"x".repeat(length - 11)}"}`;
const list = (length: number): string => `{"list":[${"1,".repeat((length - 12) / 2)}1]}`;

test.each([
  ["10 MiB of text", text(10 * MiB), true],
  ["a MiB of numbers", list(MiB), true],
  ["a byte too much", text(10 * MiB + 1), false],
  ["10 MiB that are cut off", text(10 * MiB).slice(0, -2), false],
  ["10 MiB of brackets", "[".repeat(10 * MiB), false],
  ["10 MiB of lone surrogates", `{"text":"${"\ud83d".repeat(10 * MiB - 12)}"}`, false],
])("arguments of %s are one call with one result", async (_what, input, runs) => {
  const world = hostileWorld(1);
  const calls = [TOOLS.outside, COMPLETION].map((toolName, at) =>
    part({ type: "tool-call", toolCallId: `c${at}`, toolName, input }),
  );
  const end = await world.play(plainStory([streamOf([...calls, finish("tool-calls")])]));
  await judge(world, end);
  expect(end.status).toBe("completed");
  expect(end.ran.map(({ tool }) => tool)).toEqual(runs ? [TOOLS.outside] : []);
});

test("a stream of parts that hold nothing is cut off, too", async () => {
  const world = hostileWorld(1);
  const parts = Array.from({ length: 600_000 }, (_, at) => part({ type: "text-start", id: at }));
  // Pulled one by one: the queue of Node 22's streams takes minutes over so many.
  const stream: RandomStream = { ...streamOf([...parts, finish("stop")]), pace: "pulled" };
  const end = await world.play(plainStory([stream]));
  await judge(world, end);
  expect(end).toMatchObject({ status: "failed", model: { played: 1 } });
});

test("token counts beyond all bounds stay numbers that a run can add up and record", async () => {
  const world = hostileWorld(1);
  const most = { inputTokens: { total: Number.MAX_VALUE }, outputTokens: { total: Number.MAX_VALUE } };
  const end = await world.play(plainStory([streamOf([finish("stop", most)]), streamOf([finish("stop", most)])]));
  await judge(world, end);
  expect(end.status).toBe("completed");
});

test("an id that a call of the provider's own has is not given to another", async () => {
  const world = hostileWorld(1);
  const unnamed = { type: "tool-call", toolCallId: "", toolName: TOOLS.read };
  const theirs = part({ ...unnamed, input: '{"a":1}', providerExecuted: true });
  const ours = part({ ...unnamed, input: '{"a":2}' });
  const streams = [[theirs], [ours], []].map((parts) => streamOf([...parts, finish("tool-calls")]));
  const end = await world.play(plainStory(streams));
  await judge(world, end);
  expect(end.ran).toHaveLength(1);
});

test("a run that is cancelled in the moment in which its stream opens ends at once", async () => {
  const world = hostileWorld(1);
  const hanging: RandomStream = { ...streamOf([]), ending: "hang" };
  const end = await world.play({ ...plainStory([hanging]), cancelAt: 1 });
  await judge(world, end);
  expect(end.status).toBe("cancelled");
});

function streamOf(parts: readonly unknown[]): RandomStream {
  return {
    parts: parts.map((value) => ({ value, trap: false })),
    ending: "close",
    pace: "at once",
    fault: undefined,
  };
}

function plainStory(streams: readonly RandomStream[]): RandomStory {
  const moods = { tools: [], people: ["approve" as const, "approve" as const] };
  return { shape: "one", turnCap: 3, streams, ...moods, cancelAt: undefined, stepMs: 60, listened: true };
}

/** What has to hold for a run, whatever its model said. */
async function judge({ live }: HostileWorld, outcome: PlayedStory): Promise<void> {
  const { runId, status, model } = outcome;
  const events = await eventsOf(live.host, runId);
  const journals = await live.host.journal(runId);
  expect({
    ended: ["completed", "failed", "cancelled"].includes(status),
    kept: (await live.host.get(runId))?.status,
    prompts: model.faults,
    undecided: undecided(events, outcome),
    listeners: outcome.listeners,
    streams: model.open.size,
    requests: await live.host.requests(runId),
    timers: live.clock.waiting(),
    openSteps: journals.flatMap(openSteps),
    strays: strays.splice(0),
  }).toEqual({
    ended: true,
    kept: status,
    prompts: [],
    undecided: [],
    listeners: 0,
    streams: 0,
    requests: [],
    timers: 0,
    openSteps: [],
    strays: [],
  });
}

/** Executions that no recorded verdict stands behind, that came twice, or that a person would have had to grant and did not. */
function undecided(events: readonly SluiceEvent[], { ran, approved }: PlayedStory): readonly string[] {
  const verdicts = new Map<string, unknown>();
  for (const { type, runId, executionId, attempt, data } of events) {
    if (type !== "call.decided" || data.verdict !== "approved") continue;
    verdicts.set(JSON.stringify([runId, executionId, attempt, data.callId, data.argsDigest]), data.by);
  }
  const seen = new Set<string>();
  return ran.flatMap((one) => {
    const key = JSON.stringify([one.runId, one.executionId, one.attempt, one.callId, one.argsDigest]);
    const again = seen.has(key);
    seen.add(key);
    const by = verdicts.get(key);
    const granted = by === "grant" && approved.has(`${one.runId} ${requestOf(one)}`);
    return !again && (one.tool === TOOLS.outside ? granted : by === "envelope") ? [] : [`${key} ${String(by)}`];
  });
}

function requestOf({ executionId, attempt, callId }: Ran): string {
  return `${executionId}/a${attempt}/${callId}`;
}

function openSteps({ records }: RunJournal): readonly string[] {
  const done = new Set(records.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
  return records.filter(({ phase, ordinal }) => phase === "open" && !done.has(ordinal)).map(({ stepId }) => stepId);
}
