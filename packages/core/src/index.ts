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
  parseKept,
} from "./base/json.ts";
export { usdText } from "./base/money.ts";
export { checkPipeline, checkSession } from "./definition/check.ts";
export type * from "./definition/choice.ts";
export { cancel, done, fail, fanOut, route, to } from "./definition/choices.ts";
export type * from "./definition/context.ts";
export { state } from "./definition/custom-state.ts";
export { type PipelineShape, pipelineShape, type StateShape } from "./definition/graph.ts";
export { partChanges } from "./definition/part-changes.ts";
export { type PartsOf, type PipelineParts, pipelineParts } from "./definition/parts.ts";
export { matchesArgv, matchesName, matchesPath, parsePattern, type ToolPattern } from "./definition/patterns.ts";
export { pipeline } from "./definition/pipeline.ts";
export type * from "./definition/result.ts";
export { compileSchema, withJsonSchema } from "./definition/schema.ts";
export type * from "./definition/spec.ts";
export { stage } from "./definition/stage.ts";
export { isScratchFolder } from "./definition/state.ts";
export type * from "./definition/state-rules.ts";
export { didYouMean } from "./definition/suggest.ts";
export type * from "./definition/types.ts";
export { decide, type GateState, type LiveTool, type Refused, type SecurityMode, type Verdict } from "./gate/decide.ts";
export { type DenialCause, denial, type ToolCallDenied } from "./gate/denial.ts";
export { compileEnvelope, type Envelope } from "./gate/envelope.ts";
export type * from "./gate/facts.ts";
export {
  type ApprovedBy,
  type AttemptId,
  createGrants,
  type Grants,
  type Permit,
  type Proposal,
} from "./gate/grants.ts";
export { type NamedGuard, runGuardHooks } from "./gate/hooks.ts";
export { argsSummary, replaceUnseen, visible, visibleJson } from "./gate/summary.ts";
export { defineTool, type Tool } from "./gate/tool.ts";
export { checkAnswer } from "./interaction/answers.ts";
export {
  type Answer,
  callbackInteractor,
  type Interactor,
  type PersonRequest,
  type Resolution,
} from "./interaction/interactor.ts";
export { type AnswerProof, type AnswerSeal, type CodePlace, sealWithCode } from "./interaction/proof.ts";
export {
  createRequestQueue,
  type InteractionFault,
  type RequestQueue,
  type RequestQueueOptions,
} from "./interaction/queue.ts";
export { GENESIS, hashRecord, readEvents } from "./journal/chain.ts";
export { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "./journal/events.ts";
export { type ExportedJournal, type ExportedRecord, type ExportOptions, exportLines } from "./journal/export.ts";
export { createHost, type HostOptions } from "./journal/host.ts";
export { createJournalMemory, type JournalMemory, type JournalMemoryOptions } from "./journal/memory-store.ts";
export { type RunExport, readExport } from "./journal/read-export.ts";
export type { DifferentPart, RecordDifference } from "./journal/record-difference.ts";
export { redactJson } from "./journal/redact.ts";
export { redactText } from "./journal/redact-text.ts";
export type { Replayed } from "./journal/replay.ts";
export type * from "./journal/seam.ts";
export { createSecretFilter, REDACTION_MARKER, type SecretFilter } from "./journal/secret-filter.ts";
export type * from "./journal/store.ts";
export { type CheckedChain, checkChain, verifyJournal } from "./journal/verify.ts";
export { type ExportReport, verifyExport } from "./journal/verify-export.ts";
export type { AuditFault, AuditReport } from "./journal/verify-tree.ts";
export type { ResolvedChoice } from "./routing/choice.ts";
export { decideNext, type NextDecision } from "./routing/next.ts";
export { type AnswerRule, type AnswerRuleOptions, createAnswerRule, startedUnwalled } from "./run/answer-rule.ts";
export { type Boundary, boundariesOf, pastOf } from "./run/boundaries.ts";
export type { CallAround, People, RunDeps } from "./run/deps.ts";
export type * from "./run/executor.ts";
export {
  createRunMeter,
  type LimitHit,
  type Limits,
  type RunMeter,
  type Spending,
  type Worked,
} from "./run/limits.ts";
export { type RunOutcome, readOutcome } from "./run/outcome.ts";
export { type PreparedStates, pipelineProgram, prepareStates } from "./run/program.ts";
export { replayClock, replayPipeline } from "./run/replay.ts";
export { replayTools } from "./run/replay-tools.ts";
export { createSlots, type Slots } from "./run/slots.ts";
export { addUsage } from "./run/usage.ts";
