import { defineConfig } from "vitest/config";

const source = (name: string): string => new URL(`packages/${name}`, import.meta.url).pathname;

// The tests that say what a verdict, a route and a record are; they import the sources of this folder, mutated or not, and
// not those that node_modules links to.
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
    pool: "forks",
    environment: "node",
    testTimeout: 20_000,
    include: [
      "test/unit/{canonical,check,choices,definition*,gate*,grants,hooks,interaction-queue,redact,routing,run-*,schema,secrets,template,tool}.test.ts",
      "test/property/{canonical,gate,grants-in-runs,patterns}.test.ts",
      "test/conformance/{host-audit,host-crash,host-journal-memory,host-memory,host-store}.test.ts",
      "test/facts/*.test.ts",
    ],
    exclude: ["**/node_modules/**", "**/fixtures/**"],
  },
});
