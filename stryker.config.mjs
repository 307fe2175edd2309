// `npm run mutate`: changes the sources of these folders in one location at a time and runs the tests that reach it.
// `npm run mutate -- packages/core/src/gate/decide.ts` does one file.

/** @type {import("@stryker-mutator/api/core").PartialStrykerOptions} */
export default {
  mutate: ["packages/core/src/{gate,machine,journal,run/tool-calls}/**/*.ts"],
  testRunner: "vitest",
  vitest: { configFile: "vitest.mutate.config.ts", related: false },
  // TypeScript 7 has no programming interface; tests run sources without it.
  tsconfigFile: "none.json",
  coverageAnalysis: "perTest",
  concurrency: 2,
  // Only for what hangs a process; what never ends is ended by its test. A process that is late on a busy machine is no finding.
  timeoutMS: 60_000,
  reporters: ["progress-append-only", "clear-text", "json", "html"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: ".reports/mutation.json" },
  htmlReporter: { fileName: ".reports/mutation.html" },
  tempDirName: ".reports/mutated",
  ignorePatterns: ["/.reports", "/packages/*/dist", "/.git"],
  symlinkNodeModules: true,
  plugins: ["@stryker-mutator/vitest-runner"],
};
