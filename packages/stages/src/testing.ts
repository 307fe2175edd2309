// `@sluice/stages/testing`: pipelines under test, with any test runner.
export type { ReplayRunOptions, RunDivergence, RunReplay } from "./replay/evaluate-run.ts";
export { replayRun } from "./replay/replay-run.ts";
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
