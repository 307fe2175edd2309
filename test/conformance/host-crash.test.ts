// Random programs under random trouble: killed, failing, suspended and cancelled at any record. Whatever happens, nothing that
// was recorded runs again, and what is left is one whole journal.
import {
  type Clock,
  field,
  isSluiceError,
  type Json,
  type ProgramEnd,
  type RunJournal,
  type StepRunner,
} from "@sluice/core";
import { createMemoryJournals, type JournalStore, verifyJournal } from "@sluice/core/host";
import { overJournalStore } from "@sluice/core/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { slowly } from "../support/journal.ts";

interface Plan {
  readonly ops: readonly Op[];
  readonly fails: boolean;
}
type Op =
  | { readonly kind: "step"; readonly opens: boolean }
  | { readonly kind: "sleep" | "take" | "timeout" }
  | { readonly kind: "fork"; readonly cancels: boolean; readonly children: readonly Plan[] };

/** What happens at the n-th record a process tries to write. */
interface Trouble {
  readonly at: number;
  readonly what: "kill before" | "kill after" | "fail before" | "fail after" | "suspend" | "cancel";
}

const { plan } = fc.letrec<{ plan: Plan; op: Op }>((tie) => ({
  op: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({ kind: fc.constant("step" as const), opens: fc.boolean() }),
    fc.record({ kind: fc.constantFrom("sleep" as const, "take" as const, "timeout" as const) }),
    fc.record({
      kind: fc.constant("fork" as const),
      cancels: fc.boolean(),
      children: fc.array(tie("plan"), { maxLength: 3 }),
    }),
  ),
  plan: fc.record({ ops: fc.array(tie("op"), { maxLength: 4 }), fails: fc.boolean() }),
}));
const trouble: fc.Arbitrary<Trouble> = fc.record({
  at: fc.integer({ min: 1, max: 12 }),
  what: fc.constantFrom(
    "kill before" as const,
    "kill after" as const,
    "fail before" as const,
    "fail after" as const,
    "suspend" as const,
    "cancel" as const,
  ),
});

/** Time that passes as soon as something waits for it. */
function hastyClock(): Clock {
  let now = 1_000;
  return {
    now: () => now,
    after(ms, fn) {
      const at = now + Math.max(0, ms);
      const later = setImmediate(() => {
        now = Math.max(now, at);
        fn();
      });
      return () => clearImmediate(later);
    },
  };
}

/** Does what the plan says; notes every call of a function, and what each child has to do. */
function programOf(root: Plan, calls: string[]) {
  const planOf = (runId: string): Plan => {
    const keys = [...runId.matchAll(/\/fork\/(\d+)\/c(\d+)/g)];
    return keys.reduce<Plan>((within, [, at, key]) => {
      const op = within.ops[Number(at)];
      return op?.kind === "fork" ? (op.children[Number(key)] ?? root) : root;
    }, root);
  };
  return async (steps: StepRunner): Promise<ProgramEnd> => {
    const mine = planOf(steps.runId);
    const values: Json[] = [];
    for (const [at, op] of mine.ops.entries()) {
      if (steps.signal.aborted) return { status: "cancelled", value: values, events: [] };
      switch (op.kind) {
        case "step": {
          const id = `step/${at}`;
          const fn = async (): Promise<Json> => {
            calls.push(`${steps.runId} ${id}`);
            await new Promise((resolve) => setImmediate(resolve));
            return Math.random();
          };
          values.push(await steps.run(id, fn, op.opens ? { open: { events: [], intent: { at } } } : {}));
          break;
        }
        case "sleep":
          await steps.sleepUntil(`sleep/${at}`, (await steps.now(`now/${at}`)) + 1_000);
          break;
        case "take":
          values.push((await steps.takeSignals(`take/${at}`, "news")).length);
          break;
        case "timeout":
          values.push((await steps.waitForSignal(`never/${at}`, { timeoutMs: 500 })) === undefined);
          break;
        case "fork": {
          const children = op.children.map((_plan, key) => ({ key: `c${key}`, input: key, events: [] }));
          const ends = await steps.runChildren(`fork/${at}`, children, {
            onFailure: op.cancels ? "cancel" : "settle",
            failed: (end) => end.status === "failed",
            open: { events: [] },
            joined: () => [],
          });
          values.push(Object.values(ends).map(({ status, value }) => [status, value]));
          break;
        }
      }
    }
    return { status: mine.fails ? "failed" : "completed", value: values, events: [] };
  };
}

function recorded(journals: readonly RunJournal[]): Set<string> {
  return new Set(
    journals.flatMap(({ runId, records }) =>
      records.filter(({ phase }) => phase === "done").map(({ stepId }) => `${runId} ${stepId}`),
    ),
  );
}

async function live(root: Plan, troubles: readonly Trouble[], slow: boolean): Promise<void> {
  const memory = createMemoryJournals();
  const connect = (): JournalStore => (slow ? slowly(memory.connect()) : memory.connect());
  const store = await overJournalStore(() => ({ connect }))(hastyClock());
  const calls: string[] = [];
  const program = programOf(root, calls);
  const watcher = (await store.connect()).host;
  let cancelled = false;

  for (const { at, what } of [...troubles, { at: Number.POSITIVE_INFINITY, what: "suspend" as const }]) {
    const one = await store.connect();
    const before = await watcher.get("r1");
    const done = before === undefined ? new Set<string>() : recorded(await watcher.journal("r1"));
    const from = calls.length;
    let writes = 0;
    let suspending: Promise<void> | undefined;
    let suspend = (): Promise<void> => Promise.resolve();
    let cancelling: Promise<unknown> | undefined;
    let dead = false;
    one.failWrites(async () => {
      writes += 1;
      if (dead) return "before";
      if (writes !== at) return undefined;
      if (what === "suspend") suspending = suspend().catch(() => undefined);
      else if (what === "cancel") {
        cancelling = watcher.cancel("r1", "enough", "test");
        await cancelling;
      } else {
        dead = what.startsWith("kill");
        if (what === "kill before") await one.crash();
        return what.endsWith("before") ? "before" : "after";
      }
      return undefined;
    });
    try {
      const task =
        before === undefined
          ? await one.host.start({ runId: "r1", input: null, events: [], program })
          : await one.host.resume("r1", program);
      suspend = () => task.suspend("interrupted");
      await task.settled;
    } catch (thrown) {
      // A fault of the store, and nothing else: the run must be there to be resumed, or never have begun.
      if (
        !isSluiceError(thrown, "store_io") &&
        !isSluiceError(thrown, "store_closed") &&
        !isSluiceError(thrown, "run_finished")
      )
        throw thrown;
    }
    await suspending;
    if (what === "cancel" && cancelling !== undefined) cancelled ||= (await cancelling) !== "unknown";
    await one.crash();
    // Nothing that was recorded before this life ran in it.
    expect(calls.slice(from).filter((call) => done.has(call))).toEqual([]);
    const now = await watcher.get("r1");
    if (now !== undefined) expect(verifyJournal(await watcher.journal("r1")).faults).toEqual([]);
    if (now?.end !== undefined) break;
  }

  const all = await watcher.journal("r1");
  for (const { runId, end } of all) expect(end?.status, runId).toMatch(/completed|failed|cancelled/);
  const [{ end } = { end: undefined }] = all;
  if (!cancelled) expect(end?.status).toBe(root.fails ? "failed" : "completed");
  else if (end?.status !== "cancelled") expect(end?.status).toBe(root.fails ? "failed" : "completed");
  // What the program says it saw is what its records hold.
  for (const { records, end: own } of all) {
    const steps = records.filter(({ phase, stepId }) => phase === "done" && stepId.startsWith("step/"));
    const values: readonly Json[] = steps.map(({ value }) => JSON.parse(value));
    const seen = own?.value ?? null;
    if (Array.isArray(seen))
      expect(seen.filter((value) => typeof value === "number" && !Number.isInteger(value))).toEqual(values);
    else expect(field(seen, "reason")).toBeTypeOf("string");
  }
  await watcher.close();
}

test.each([
  { kind: "at once", slow: false },
  { kind: "a few turns later", slow: true },
])(
  "a random program under random trouble, on a store that answers $kind, ends once, runs nothing recorded again, and leaves a whole journal",
  {
    timeout: 120_000,
  },
  async ({ slow }) => {
    const prove = (root: Plan, troubles: readonly Trouble[]): Promise<void> => live(root, troubles, slow);
    await fc.assert(fc.asyncProperty(plan, fc.array(trouble, { maxLength: 6 }), prove), {
      numRuns: 150,
    });
  },
);
