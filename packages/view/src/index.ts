export { executionKey, usageByModel } from "./projection/execution-reducer.ts";
export { type PipelinePart, pipelinePart } from "./projection/graph/pipeline-view.ts";
export { type RailStation, railOf } from "./projection/graph/rail.ts";
export {
  flatGroupsOf,
  type ListItems,
  listStatus,
  type StateStop,
  type Station,
  stationsFromInitial,
  stopsIn,
  sumOf,
} from "./projection/graph/stations.ts";
export { type RunLine, type RunReducer, reduceRun } from "./projection/reduce-run.ts";
export type {
  AnswerView,
  BoundaryItem,
  CallView,
  CapView,
  CommandView,
  DeniedCall,
  ExecutionView,
  ForkView,
  LiveView,
  LogItem,
  ModelUsage,
  RunEndItem,
  RunRequest,
  RunView,
  TranscriptItem,
} from "./projection/run-view.ts";
export { type IdleTimes, idleOf } from "./projection/time/idle.ts";
export { workedMs, workedTogetherMs } from "./projection/time/rests.ts";
export { mainArgument, reasonOf } from "./words/call-words.ts";
export { COMMAND_SYMBOLS, commandLineOf, exitText, polledText } from "./words/command-words.ts";
export { childrenText, type Hop, type RouteView } from "./words/routes.ts";
export {
  CALL_SYMBOLS,
  elapsed,
  isUnfinished,
  moneyOf,
  shortCount,
  span,
  stateLabel,
  symbolOf,
  timeLeft,
  tokensOf,
} from "./words/symbols.ts";
