import type {
  EventQuery,
  Json,
  ProgramEnd,
  RunEnd,
  RunHost,
  RunProgram,
  RunTask,
  SluiceEvent,
  StepRunner,
} from "@sluice/core";
import type { JournalStore } from "@sluice/core/host";
import { expect } from "vitest";

export function completed(value: Json = null): ProgramEnd {
  return { status: "completed", value, events: [{ type: "run.finished", data: { status: "completed" } }] };
}

export async function start(host: RunHost, program: RunProgram, runId = "r1", input: Json = null): Promise<RunTask> {
  return await host.start({ runId, input, events: [{ type: "run.started", data: {} }], program });
}

export async function endOf(task: RunTask): Promise<RunEnd> {
  const settled = await task.settled;
  if ("end" in settled) return settled.end;
  return expect.fail(`${task.runId} was suspended`);
}

/** Waits for a signal and ends with what it said. */
export async function waiting(steps: StepRunner): Promise<ProgramEnd> {
  return completed((await steps.waitForSignal("go"))?.payload ?? null);
}

export async function eventsOf(host: RunHost, runId = "r1", query: EventQuery = {}): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, query)) events.push(event);
  return events;
}

/** A store with some of its calls changed. */
export function changed(store: JournalStore, changes: Partial<JournalStore>): JournalStore {
  return { ...store, ...changes };
}

/** Lets everything happen that can happen without a timer. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** The same store, every call of which takes its turns: what an engine across a network is like. */
export function slowly(store: JournalStore): JournalStore {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const slow =
    <A extends readonly unknown[], T>(call: (...args: A) => Promise<T> | T) =>
    async (...args: A): Promise<T> => {
      await turn();
      const result = await call(...args);
      await turn();
      return result;
    };
  return {
    ownerId: store.ownerId,
    create: slow(store.create),
    createWhole: slow(store.createWhole),
    claim: slow(store.claim),
    release: slow(store.release),
    append: slow(store.append),
    run: slow(store.run),
    runs: slow(store.runs),
    records: slow(store.records),
    due: slow(store.due),
    nextWake: slow(store.nextWake),
    putSignal: slow(store.putSignal),
    signals: slow(store.signals),
    requestCancel: slow(store.requestCancel),
    requests: slow(store.requests),
    remove: slow(store.remove),
    onChange: store.onChange,
    close: slow(store.close),
  };
}
