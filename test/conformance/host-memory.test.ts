import { createJournalMemory, type JournalStore } from "@sluice/core";
import { hostConformance, overJournalStore } from "@sluice/core/testing";
import { test } from "vitest";

hostConformance({
  name: "in memory",
  test,
  open: overJournalStore(() => createJournalMemory({ keepFinished: 2_000 })),
});

/** The same store, every call of which takes its turns: what an engine across a network is like. */
function slowly(store: JournalStore): JournalStore {
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
    claim: slow(store.claim),
    release: slow(store.release),
    append: slow(store.append),
    run: slow(store.run),
    runs: slow(store.runs),
    records: slow(store.records),
    putSignal: slow(store.putSignal),
    signals: slow(store.signals),
    requestCancel: slow(store.requestCancel),
    requests: slow(store.requests),
    onChange: store.onChange,
    close: slow(store.close),
  };
}

hostConformance({
  name: "in memory, a few turns later",
  test,
  open: overJournalStore(() => {
    const memory = createJournalMemory({ keepFinished: 2_000 });
    return { connect: () => slowly(memory.connect()) };
  }),
});
