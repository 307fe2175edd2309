import { createJournalMemory } from "@sluice/core";
import { hostConformance, overJournalStore } from "@sluice/core/testing";
import { test } from "vitest";
import { slowly } from "../support/journal.ts";

hostConformance({
  name: "in memory",
  test,
  open: overJournalStore(() => createJournalMemory({ keepFinished: 2_000 })),
});

hostConformance({
  name: "in memory, a few turns later",
  test,
  open: overJournalStore(() => {
    const memory = createJournalMemory({ keepFinished: 2_000 });
    return { connect: () => slowly(memory.connect()) };
  }),
});
