export { executionKey, usageByModel } from "./projection/execution-reducer.ts";
export { type RunLine, type RunReducer, reduceRun } from "./projection/reduce-run.ts";
export type {
  BoundaryItem,
  CallView,
  CapView,
  DeniedCall,
  ExecutionView,
  ForkView,
  Hop,
  LiveView,
  LogItem,
  ModelUsage,
  RunEndItem,
  RunView,
  TranscriptItem,
} from "./projection/run-view.ts";
export {
  type ExecutionGroup,
  groupsOf,
  type ListItems,
  listStatus,
  type StateStop,
  type Station,
  stationsFromInitial,
  stationsOf,
  stopsIn,
  sumOf,
} from "./projection/stations.ts";
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
