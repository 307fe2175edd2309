import { join } from "node:path";
import { hostConformance, overJournalStore } from "@sluice/core/testing";
import { openJournalStore } from "@sluice/sqlite";
import { test } from "vitest";
import { scratch } from "../support/sqlite-store.ts";

hostConformance({
  name: "SQLite",
  test,
  open: overJournalStore(() => {
    const folder = join(scratch(), "store");
    return { connect: () => openJournalStore(folder) };
  }),
});
