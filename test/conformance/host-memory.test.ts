import { createMemoryJournals } from "@sluice/core/host";
import { hostConformance, overJournalStore } from "@sluice/core/testing";
import { test } from "vitest";
import { slowly } from "../support/journal.ts";

hostConformance({
  name: "in memory",
  test,
  open: overJournalStore(() => createMemoryJournals({ keepFinished: 2_000 })),
});

hostConformance({
  name: "in memory, a few turns later",
  test,
  open: overJournalStore(() => {
    const memory = createMemoryJournals({ keepFinished: 2_000 });
    return { connect: () => slowly(memory.connect()) };
  }),
});
