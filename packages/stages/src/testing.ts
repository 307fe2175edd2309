// `@sluice/stages/testing`: pipelines under test, with any test runner.
export { type ReplayRunOptions, type RunDivergence, type RunReplay, replayRun } from "./replay/replay-run.ts";
export { readRun, writeRun } from "./testing/recorded-run.ts";
export {
  type RecordedRun,
  type RecordedRunOptions,
  runRecorded,
  runScripted,
  type ScriptedRunOptions,
  type TestRun,
  type TestRunOptions,
} from "./testing/run.ts";
export type { FileChange, WorkspaceOptions } from "./testing/workspace.ts";
