// Tests the store in lines.ts against all rules of the journal. The suite registers its tests with any runner.
//   node --test examples/custom-store/conformance.test.ts
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { hostConformance, overJournalStore } from "@sluice/core/testing";
import { openLineJournal } from "./lines.ts";

hostConformance({
  name: "lines",
  test: (name, prove) => void test(name, prove),
  open: overJournalStore(() => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-lines-"));
    const journal = openLineJournal(join(folder, "runs.jsonl"));
    return {
      connect: () => journal.connect(),
      dispose: async () => {
        journal.close();
        rmSync(folder, { recursive: true });
      },
    };
  }),
});
