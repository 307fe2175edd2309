import { field, isSluiceError, type Json, type RunHost, type RunJournal, SluiceError } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { replayRun, type Script } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { hostileWorld, pipelineOf } from "../support/hostile-world.ts";
import { story as hostileStory } from "../support/random-streams.ts";
import { tool, workExecutor } from "../support/run-kit.ts";
import { ASKING, FAILING, play, SMOOTH, ship, TROUBLED } from "../support/run-scenes.ts";
import { answerAll, scripted } from "../support/run-views.ts";
import { rehashed } from "../support/tampering.ts";

const part = fc.constantFrom<Script["stages"]>(SMOOTH, ASKING, ASKING, TROUBLED, FAILING);
const story = fc.record({
  plan: fc.constantFrom<Script["stages"]>(SMOOTH, SMOOTH, TROUBLED, FAILING),
  execute: part,
  test: part,
  lint: part,
  review: fc.constantFrom<Script["stages"]>(SMOOTH, TROUBLED),
  answers: fc.array(fc.constantFrom("approve", "deny", "defer"), { minLength: 1, maxLength: 6 }),
  /** After how many records of a process it ends, and how. */
  ends: fc.array(fc.record({ after: fc.nat(24), by: fc.constantFrom("suspend", "crash", "cancel") }), { maxLength: 3 }),
  /** What becomes of a run that stopped: it is resumed, left as it is, or cancelled with nobody at work on it. */
  afterwards: fc.constantFrom("resume", "resume", "leave", "close"),
});
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

/** A store that calls back once so many records were written, and can fail like that of a process that is gone. */
function counted(store: JournalStore, after: number | undefined, reached: () => void) {
  const seen = { records: 0, gone: false };
  const append: JournalStore["append"] = (commit) => {
    if (seen.gone) throw new SluiceError("Host", "store_gone", "the process has ended");
    const written = store.append(commit);
    seen.records += 1;
    if (seen.records === after) reached();
    return written;
  };
  const crash = (): void => {
    seen.gone = true;
  };
  return { store: { ...store, append }, crash };
}

/** Runs a story through its processes, and says what it recorded. */
async function record({ answers, ends, afterwards, ...parts }: Story, tools: ReturnType<typeof tool>[]) {
  const clock = handClock();
  const memory = createMemoryJournals();
  const reader: RunHost = createHost(memory.connect(), { clock });
  const script = Object.fromEntries(Object.entries(parts).map(([state, from]) => [state, from[state] ?? []]));
  const left = [...answers];
  let runId: string | undefined;
  for (let process = 0; ; process += 1) {
    const end = ends[process];
    const own = memory.connect();
    const { store, crash } = counted(own, end?.after, () => {
      if (end?.by === "crash") crash();
      else if (end?.by === "cancel") void handle.cancel("enough").catch(() => undefined);
      else void handle.suspend().catch(() => undefined);
    });
    const live = scripted(script, { clock, tools, host: createHost(store, { clock }) });
    const handle = runId === undefined ? live.start(ship, { task: "ship it" }) : live.resume(ship, runId);
    runId = handle.runId;
    const state = { status: "" };
    handle.then(
      (result) => (state.status = result.status),
      (thrown) => (state.status = `stopped: ${String(thrown)}`),
    );
    for (let idle = 0; state.status === ""; idle += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (idle % 3 !== 2 || state.status !== "") continue;
      clock.turn(1_000);
      const kind = left.length > 1 ? left.shift() : left[0];
      await answerAll(live, runId, kind === "deny" ? { kind, reason: "not now" } : { kind: kind ?? "deny" });
      if (idle > 5_000) throw new Error("the story does not end");
    }
    await live.close();
    await own.close();
    const stopped = state.status === "suspended" || state.status.startsWith("stopped");
    if (stopped && afterwards === "resume" && process < ends.length) continue;
    if (stopped && afterwards === "close") await reader.cancel(runId, "nobody wants it", "me");
    return await reader.journal(runId);
  }
}

function wasLeft(journals: readonly RunJournal[], stepId: string): boolean {
  return journals.some(({ records }) => records.some((record) => record.stepId === stepId));
}

test("whatever a run went through, it is replayed as it was recorded, and no tool runs", async () => {
  const seen = { completed: 0, failed: 0, cancelled: 0, unfinished: 0, resumed: 0, closed: 0 };
  await fc.assert(
    fc.asyncProperty(story, async (given) => {
      let ran = 0;
      const execute = async () => {
        ran += 1;
        return { ok: true, output: `the world at ${ran}` };
      };
      const tools = [tool("look", { effect: "read", execute }), tool("change", { effect: "write", execute })];
      const journals = await record(given, tools);
      const before = ran;
      // With its tools, and with nothing but the record.
      for (const options of [{ tools }, {}]) {
        const report = await replayRun(ship, journals, { ...options, env: {} });
        expect(report.divergence?.message).toBeUndefined();
        seen[report.status] += 1;
      }
      expect(ran).toBe(before);
      if (wasLeft(journals, "resume")) seen.resumed += 1;
      if (wasLeft(journals, "closed")) seen.closed += 1;
    }),
    { numRuns: 70 },
  );
  for (const [way, times] of Object.entries(seen)) expect(times, way).toBeGreaterThan(2);
});

test("whatever a rewritten record says, its replay ends in a report", async () => {
  const { live, runId } = await play(ASKING);
  const [root, ...children] = await live.host.journal(runId);
  if (root === undefined) throw new Error("no journal");
  const steps = root.records.flatMap(({ seq, phase }) => (phase === "done" ? [seq] : []));
  let other = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...steps),
      fc.array(fc.nat(9), { maxLength: 4 }),
      fc.jsonValue(),
      async (seq, way, junk) => {
        const records = root.records.map((record) =>
          record.seq === seq
            ? { ...record, value: JSON.stringify(replaced(JSON.parse(record.value), way, junk)) }
            : record,
        );
        const changed = [rehashed({ ...root, records }), ...children];
        // A join that names other heads is no record of these siblings.
        const report = await replayRun(ship, changed, { env: {} }).catch((thrown: unknown) => {
          expect(isSluiceError(thrown, "journal_damaged")).toBe(true);
          return undefined;
        });
        if (report?.identical === false) other += 1;
      },
    ),
    { numRuns: 100 },
  );
  expect(other).toBeGreaterThan(20);
});

/** A value with something else at the end of a way into it. */
function replaced(value: Json, [step, ...rest]: readonly number[], junk: unknown): Json {
  const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const key = step === undefined ? undefined : keys[step % keys.length];
  if (key === undefined) return JSON.parse(JSON.stringify(junk));
  const copy: Json = JSON.parse(JSON.stringify(value));
  return JSON.parse(
    JSON.stringify(Object.assign(copy ?? {}, { [key]: replaced(field(copy, key) ?? null, rest, junk) })),
  );
}

test("whatever a model streams, its run is replayed as it was recorded", async () => {
  const seen = new Map<string, number>();
  const world = hostileWorld(2);
  await fc.assert(
    fc.asyncProperty(hostileStory, async (given) => {
      const { runId, status } = await world.play(given);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      const journals = await world.live.host.journal(runId);
      const report = await replayRun(pipelineOf(given), journals, { env: {}, executors: [workExecutor] });
      expect(report.divergence?.message).toBeUndefined();
      expect(report.status).toBe(status);
    }),
    { numRuns: 80 },
  );
  for (const status of ["cancelled", "completed", "failed"]) expect(seen.get(status), status).toBeGreaterThan(5);
});
