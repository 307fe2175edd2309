import { defineConfig } from "vitest/config";

const source = (name: string): string => new URL(`packages/${name}`, import.meta.url).pathname;

// The tests that say what a verdict, a route and a record are, by the part that is mutated: few, so that all is done in an
// hour. They import the sources of this folder, mutated or not, and not those that node_modules links to.
const TESTS: Readonly<Record<string, readonly string[]>> = {
  gate: ["test/unit/{authorize-call,gate-*,hooks,tool}.test.ts", "test/property/gate.test.ts"],
  machine: [
    "test/unit/{choices,failure-places,machine,machine-*,orchestrated,router,routing,run-routes,run-start-at}.test.ts",
    "test/property/{machine-walks,reference-machine,reference-workflows}.test.ts",
  ],
  records: ["test/unit/{journal-*,redact,secrets}.test.ts"],
  journal: [
    "test/conformance/{host-journal-memory,host-memory,host-store,journal-stores}.test.ts",
    "test/unit/{journal-*,replay}.test.ts",
  ],
  "run/stage": ["test/unit/{custom-state,replay-phases,run-*}.test.ts"],
  "run/tool-calls": ["test/unit/{answer-rule,run-calls}.test.ts", "test/attack/approved-before.test.ts"],
};
const { SLUICE_MUTATE: part } = process.env;

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@sluice\/core\/(\w+)$/, replacement: source("core/src/$1.ts") },
      ...["core", "stages", "sqlite"].map((name) => ({
        find: new RegExp(`^@sluice/${name}$`),
        replacement: source(`${name}/src/index.ts`),
      })),
    ],
  },
  test: {
    // One process for all changes: tests leave nothing behind, and loading everything anew for each took most of the time.
    isolate: false,
    environment: "node",
    setupFiles: ["test/support/property-seed.ts"],
    // Property tests take few samples: each runs for every change of what it reaches.
    env: { SLUICE_TEST_MACHINES: "25", SLUICE_TEST_CALLS: "30" },
    // Of what never ends: a test that takes a second without other work takes five beside some.
    testTimeout: 10_000,
    include: [...(part === undefined ? Object.values(TESTS).flat() : (TESTS[part] ?? []))],
    exclude: ["**/node_modules/**", "**/fixtures/**"],
  },
});
