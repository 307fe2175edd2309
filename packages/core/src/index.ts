export { type Clock, systemClock } from "./base/clock.ts";
export {
  type ErrorClass,
  type ErrorForModel,
  isSluiceError,
  type Problem,
  SluiceError,
  type TextPlace,
} from "./base/errors.ts";
export { field, isJson, isJsonObject, type Json, type JsonObject, type ParsedJson, parseJson } from "./base/json.ts";
export type { SourcePlace } from "./base/source-place.ts";
export { stage } from "./definition/agents/stage.ts";
export { checkPipeline } from "./definition/check/check.ts";
export {
  type AnyChoice,
  type Branch,
  type BranchShape,
  backToInterrupted,
  type Cancel,
  type ChoiceAmong,
  type ChoiceShape,
  cancel,
  type DeclaredRoute,
  type Done,
  done,
  type Fail,
  type FanOut,
  type ForEach,
  type ForEachOptions,
  type Fork,
  type ForkOptions,
  fail,
  fanOut,
  forEach,
  fork,
  type Invoke,
  type InvokeOptions,
  invoke,
  type ParsedChoice,
  type Return,
  route,
  type SiblingShape,
  type StageList,
  type To,
  to,
} from "./definition/choice.ts";
export { type PipelineShape, pipelineShape, type StateShape } from "./definition/graph.ts";
export type { ToolPattern } from "./definition/patterns/tool-pattern.ts";
export { pipeline } from "./definition/pipeline.ts";
export type {
  Additions,
  Arrival,
  Cancelled,
  Completed,
  Failed,
  FailureCode,
  ListItem,
  Paused,
  ProjectFacts,
  SiblingOutcome,
  SkillFacts,
  Skipped,
  StageContext,
  StageResult,
  Usage,
} from "./definition/result.ts";
export type {
  ChosenEnd,
  ChosenRoute,
  FinalOutcome,
  Guard,
  GuardScope,
  GuardVerdict,
  InterruptSpec,
  KindFacts,
  Part,
  PipelineMeta,
  PipelineSpec,
  RouteChooser,
  RouteFallback,
  RoutesSpec,
  RowSpec,
  RowTrigger,
  StateRoutes,
  StateSpec,
} from "./definition/spec.ts";
export { final, state } from "./definition/state.ts";
export type {
  AllowedTool,
  AssertAnswer,
  GuardedCall,
  GuardHook,
  PreconditionAnswer,
  ProviderFaultOptions,
  ProviderRetry,
  RetryPolicy,
  RunLimits,
  StateEnvironment,
  StateLimits,
  StateSandbox,
  Veto,
} from "./definition/state-rules.ts";
export type {
  AnyPipeline,
  AnyState,
  Choice,
  ChoosingState,
  EventOutput,
  EventStageOptions,
  Exact,
  In,
  Interrupt,
  NextMap,
  OrchestratorOptions,
  Out,
  OutputOf,
  Pipeline,
  PipelineCommon,
  Reads,
  Row,
  Stage,
  StageOptions,
  State,
  StateCommon,
  StateOptions,
  TargetsWithin,
  Transitions,
} from "./definition/types.ts";
export type { CallRequest } from "./gate/authorize-call.ts";
export type {
  CallScene,
  FileEdit,
  MeasureScene,
  Reach,
  RecoverAnswer,
  Subject,
  TextMask,
  ToolCall,
  ToolEffect,
  ToolResult,
  ToolSpec,
  WatchedFiles,
  Workspace,
} from "./gate/subjects.ts";
export { defineTool, type Tool } from "./gate/tool.ts";
export type { CallUsage } from "./gate/usage.ts";
export type { CheckedChain } from "./journal/audit/verify.ts";
export type { ExportReport } from "./journal/audit/verify-export.ts";
export type { AuditFault, AuditReport } from "./journal/audit/verify-tree.ts";
export { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "./journal/events.ts";
export { memoryHost } from "./journal/host/host.ts";
export type {
  AwaitResumeEnd,
  AwaitResumeOptions,
  ChildRun,
  EventQuery,
  ExecutionFault,
  FaultReason,
  JournalRecord,
  LiveChunk,
  NewRun,
  OpenRequest,
  ProgramEnd,
  PrunedRun,
  PruneQuery,
  ReceivedSignal,
  RecordedOutcome,
  RecordPhase,
  RequestKind,
  ResumeRunOptions,
  RunChildrenOptions,
  RunCopy,
  RunEnd,
  RunFault,
  RunHost,
  RunJournal,
  RunProgram,
  RunSummary,
  RunTask,
  SiblingEnd,
  SignalMessage,
  SignalOutcome,
  SignalsTaken,
  StepCall,
  StepCost,
  StepOptions,
  StepRunner,
  SuspendReason,
  TreeRun,
  WaitOptions,
} from "./journal/seam.ts";
export type { LegalEvent } from "./machine/legal-events.ts";
export type { RefusedTarget, RouteTarget } from "./machine/route-targets.ts";
export type { AnswerProof } from "./people/answer-proof.ts";
export {
  type Answer,
  callbackInteractor,
  type Interactor,
  type PersonRequest,
  type Resolution,
} from "./people/interactor.ts";
export type {
  Acceptance,
  ActOutcome,
  ActScope,
  ActUsage,
  AvailableTool,
  AvailableTools,
  CallOutcome,
  HandledInterrupt,
  ScopedSteps,
  StateExecutor,
  StatePlace,
} from "./run/executor.ts";
export type { ProviderFaultPolicy } from "./run/limits/provider-faults.ts";
export { withJsonSchema } from "./schema/compile-schema.ts";
export type { CompiledSchema, Issue, JsonSchema, Schema, SchemaVerdict, StandardSchema } from "./schema/schema.ts";
