export { canonicalJson, digestOf, sha256 } from "./base/canonical.ts";
export { type Clock, systemClock } from "./base/clock.ts";
export {
  type ErrorClass,
  type ErrorForModel,
  isSluiceError,
  messageOf,
  type Problem,
  problemsError,
  SluiceError,
  toModelShape,
} from "./base/errors.ts";
export {
  deepFreeze,
  field,
  isJson,
  isJsonObject,
  isObject,
  type Json,
  type JsonObject,
  jsonFault,
  type ParsedJson,
  parseJson,
  parseStoredJson,
} from "./base/json.ts";
export { usdText } from "./base/money.ts";
export { didYouMean } from "./base/problems.ts";
export { checkPipeline, checkSession } from "./definition/check.ts";
export type * from "./definition/choice.ts";
export { cancel, done, fail, fanOut, route, to } from "./definition/choice.ts";
export { type PipelineParts, pipelineParts, type StateParts } from "./definition/fingerprint/fingerprint.ts";
export { partChanges } from "./definition/fingerprint/part-changes.ts";
export { type PipelineShape, pipelineShape, type StateShape } from "./definition/graph.ts";
export {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
  type ToolPattern,
} from "./definition/patterns/tool-pattern.ts";
export { pipeline } from "./definition/pipeline.ts";
export type * from "./definition/result.ts";
export type * from "./definition/spec.ts";
export { stage } from "./definition/stage.ts";
export { isScratchFolder, state } from "./definition/state.ts";
export type * from "./definition/state-rules.ts";
export type * from "./definition/types.ts";
export { decide, type GateState, type LiveTool, type Refused, type SecurityMode, type Verdict } from "./gate/decide.ts";
export { type DenialCause, denial, type ToolCallDenied } from "./gate/denial.ts";
export { compileEnvelope, type Envelope } from "./gate/envelope.ts";
export {
  type ApprovedBy,
  type AttemptId,
  createGrants,
  type Grants,
  type Permit,
  type Proposal,
} from "./gate/grants.ts";
export { type NamedGuard, runGuardHooks } from "./gate/guard-hooks.ts";
export type * from "./gate/subjects.ts";
export { argsSummary, replaceUnseen, visible, visibleJson } from "./gate/summary.ts";
export { defineTool, type Tool } from "./gate/tool.ts";
export { type ExportedJournal, type ExportedRecord, type ExportOptions, exportLines } from "./journal/audit/export.ts";
export { type RunExport, readExport } from "./journal/audit/read-export.ts";
export { type CheckedChain, checkChain, verifyJournal } from "./journal/audit/verify.ts";
export { type ExportReport, verifyExport } from "./journal/audit/verify-export.ts";
export type { AuditFault, AuditReport } from "./journal/audit/verify-tree.ts";
export { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "./journal/events.ts";
export { createHost, type HostOptions } from "./journal/host/host.ts";
export { decodeValue } from "./journal/record/append.ts";
export { GENESIS, hashRecord, readEvents } from "./journal/record/hash-chain.ts";
export {
  createSecretFilter,
  REDACTION_MARKER,
  redactJson,
  redactText,
  type SecretFilter,
} from "./journal/redaction.ts";
export type { DifferentPart, RecordDifference } from "./journal/replay/record-diff.ts";
export type { ReplayResult } from "./journal/replay/replay-journals.ts";
export type * from "./journal/seam.ts";
export {
  type AttemptRef,
  type AttemptStepRef,
  childRunId,
  parseAttemptStep,
  parseRequestId,
  parseSiblingId,
  parseStepId,
  RECORD_PHASES,
  type StepRef,
} from "./journal/step-id.ts";
export type * from "./journal/store/journal-store.ts";
export { createMemoryJournals, type MemoryJournals, type MemoryJournalsOptions } from "./journal/store/memory-store.ts";
export type { ResolvedChoice } from "./machine/decide-next.ts";
export { decideNext, type NextDecision } from "./machine/decide-next.ts";
export { type AnswerProof, type AnswerSeal, type CodeScope, sealWithCode } from "./people/answer-proof.ts";
export {
  type Answer,
  callbackInteractor,
  checkAnswer,
  type Interactor,
  type PersonRequest,
  type Resolution,
} from "./people/interactor.ts";
export {
  createRequestQueue,
  type InteractionFault,
  type RequestQueue,
  type RequestQueueOptions,
} from "./people/request-queue.ts";
export type { CallAround, People, RunDeps } from "./run/deps.ts";
export type * from "./run/executor.ts";
export { type ConcurrencySlots, createConcurrencySlots } from "./run/limits/concurrency-slot.ts";
export {
  addUsage,
  createRunMeter,
  type Elapsed,
  type LimitHit,
  type Limits,
  type RunMeter,
  type Spending,
} from "./run/limits/limits.ts";
export { type PreparedStates, pipelineProgram, prepareStates } from "./run/pipeline-run.ts";
export { type ForkPoint, forkPointsOf, recordsBefore } from "./run/replay/fork-points.ts";
export { replayTools } from "./run/replay/recorded-tools.ts";
export { replayClock, replayPipeline } from "./run/replay/replay-pipeline.ts";
export { type RunOutcome, readOutcome } from "./run/run-result.ts";
export {
  type AnswerRule,
  type AnswerRuleOptions,
  createAnswerRule,
  startedUnsandboxed,
} from "./run/tool-calls/answer-rule.ts";
export { type RecordedVerdict, readVerdicts } from "./run/tool-calls/verdict.ts";
export { compileSchema, withJsonSchema } from "./schema/compile-schema.ts";
export type * from "./schema/schema.ts";
