// What Sluice's own packages share. Not covered by the promises of the other entries.

export { canonicalJson, digestOf, sha256 } from "./base/canonical.ts";
export { LAST_DATE } from "./base/clock.ts";
export { shortened } from "./base/cut-texts.ts";
export { messageOf, problemsError } from "./base/errors.ts";
export {
  isFilledTexts,
  isObject,
  isPromiseLike,
  isSameJson,
  isTexts,
  jsonFault,
  numberField,
  parseStoredJson,
  textField,
  toJsonValue,
  unicodeFault,
  withoutExcerpt,
} from "./base/json.ts";
export { createReport, didYouMean, idFault, type Report, suggestOneOf } from "./base/problems.ts";
export { parsePlace, pathInside, placeText, sourcePlaceOf, thrownAt } from "./base/source-place.ts";
export { jsonFaultPosition, jsonFaultText, positionAt } from "./base/text-position.ts";
export { MODEL_SETTINGS, readModelSettings } from "./definition/agents/model-settings.ts";
export { ORCHESTRATED_ENDS } from "./definition/agents/orchestrator.ts";
export { readPrompt } from "./definition/agents/stage.ts";
export { checkSession } from "./definition/check/check.ts";
export { invokeKey, parseChoice } from "./definition/choice.ts";
export { type PipelineParts, pipelineParts } from "./definition/fingerprint/fingerprint.ts";
export { partChanges } from "./definition/fingerprint/part-changes.ts";
export { pipelinesWithin, recordedGraph, statesWithin } from "./definition/graph.ts";
export { matchWildcards } from "./definition/patterns/glob.ts";
export { readPathScope } from "./definition/patterns/path-scope.ts";
export { type CommonOptions, schemaAt, stateSpec } from "./definition/state.ts";
export { checkLimits, checkProviderFaults, isVariable, readVariables } from "./definition/state-rules.ts";
export { type CompiledTemplate, readTemplate, templateValue } from "./definition/template.ts";
export { denialIn } from "./gate/denial.ts";
export { hardLimitOn } from "./gate/hard-limits.ts";
export { SYSTEM_FOLDER } from "./gate/known-options.ts";
export { COMMANDS_FOLDER } from "./gate/subjects.ts";
export { excerptOf, replaceUnseen, visible, visibleJson } from "./gate/summary.ts";
export { lazyTool, type ToolFacts } from "./gate/tool.ts";
export { INTERRUPTION_SIGNAL } from "./journal/host/interruptions.ts";
export { decodeValue } from "./journal/record.ts";
export {
  createSecretFilter,
  extendedData,
  maskSecrets,
  REDACTION_MARKER,
  redactJson,
  redactText,
  type SecretFilter,
  sharedData,
} from "./journal/redaction.ts";
export type { RecordDifference } from "./journal/replay/record-diff.ts";
export {
  childRunId,
  END_STATUSES,
  isLifecycle,
  itemKeyOf,
  parseAttemptStep,
  parseRequestId,
  parseSiblingId,
  parseStepId,
  RECORD_PHASES,
  readEnd,
  rootRunId,
  runDepth,
} from "./journal/step-id.ts";
export { unknownRun } from "./journal/store/read-runs.ts";
export { executionIdOf, MAX_VISITS, maxHopsOf, parseExecutionId } from "./machine/machine-state.ts";
export { isDecision } from "./machine/recorded-decision.ts";
export { cappedTarget } from "./machine/route-targets.ts";
export { inputAt, type StartAt, startProblems } from "./machine/start-at.ts";
export type { AnswerSeal, CodeScope } from "./people/answer-proof.ts";
export { checkAnswer, isQuestion } from "./people/interactor.ts";
export { createRequestQueue, type InteractionFault, type RequestQueue } from "./people/request-queue.ts";
export { type CallAround, type RunDeps, SECURITY_MODES } from "./run/deps.ts";
export { eventWords, visibleLine } from "./run/event-words.ts";
export { createConcurrencySlots } from "./run/limits/concurrency-slot.ts";
export { type RecordedCosts, recordedCosts, usdText } from "./run/limits/ledger.ts";
export {
  addUsage,
  createRunMeter,
  type LimitHit,
  NO_USAGE,
  raceAbort,
} from "./run/limits/limits.ts";
export { pipelineProgram } from "./run/pipeline-run.ts";
export { type PreparedStates, prepareStates } from "./run/prepared-states.ts";
export type { ForkPoint } from "./run/replay/fork-points.ts";
export { replayTools } from "./run/replay/recorded-tools.ts";
export { replayClock, replayPipeline } from "./run/replay/replay-pipeline.ts";
export type { AnswerRule, AnswerRuleOptions, People } from "./run/requests/answer.ts";
export { type Acknowledgement, type RunError, type RunOutcome, readOutcome } from "./run/run-result.ts";
export { readLeft } from "./run/stage/recorded-phases.ts";
export { type RecordedVerdict, readVerdicts } from "./run/tool-calls/verdict.ts";
export { compileSchema, ownSchema, verdictNow } from "./schema/compile-schema.ts";
export { issuesText } from "./schema/issues.ts";
export { isClosedSchema, nestedSchema, resolveReference } from "./schema/schema-path.ts";
export * as shape from "./schema/shape.ts";
