export { executionKey, usageByModel } from "./projection/execution-reducer.ts";
export { type RunLine, type RunReducer, reduceRun } from "./projection/reduce-run.ts";
export type {
  BoundaryItem,
  CallView,
  CapView,
  DeniedCall,
  ExecutionView,
  Hop,
  LiveView,
  LogItem,
  ModelUsage,
  RunEndItem,
  RunView,
  TranscriptItem,
} from "./projection/run-view.ts";
export { type StateStop, type Station, stationsFromInitial, stationsOf, stopsIn } from "./projection/stations.ts";
export { mainArgument, reasonOf } from "./words/call-words.ts";
export {
  CALL_SYMBOLS,
  elapsed,
  isUnfinished,
  moneyOf,
  shortCount,
  span,
  stateLabel,
  symbolOf,
  tokensOf,
} from "./words/symbols.ts";
