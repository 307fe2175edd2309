export { executionKey } from "./projection/execution-reducer.ts";
export { eventsOf, rootOf, startedWith } from "./projection/read-run.ts";
export { RecordReader } from "./projection/record-reader.ts";
export { createRunReducer } from "./projection/reduce-run.ts";
export type {
  BoundaryItem,
  CallView,
  CapView,
  ExecutionView,
  Hop,
  LiveView,
  RunEndItem,
  RunView,
  Told,
  TranscriptItem,
} from "./projection/run-view.ts";
export { type Station, type Stop, stationsOf } from "./projection/stations.ts";
export { type RunWatch, watchRun } from "./projection/watch-run.ts";
export { CALL_MARKS, reasonOf, tellingArgument } from "./words/call-words.ts";
export {
  elapsed,
  isUnfinished,
  markOf,
  moneyOf,
  nameOf,
  shortCount,
  span,
  tokensOf,
  widthOfLine,
} from "./words/symbols.ts";
