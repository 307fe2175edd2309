export { agentExecutor } from "./agent/executor.ts";
export { boundaryBefore, type ChangedSince, changedSince, type ForkRunOptions } from "./forking.ts";
export { type HttpAddress, readHttpAddress } from "./http-address.ts";
export { sendMessage } from "./messages.ts";
export {
  type ChosenModel,
  chooseModel,
  DEFAULT_MODELS,
  DEFAULT_MODELS_DATE,
  type DefaultModel,
  type ModelChoice,
} from "./models/default-model.ts";
export type { ResolvedModel, TurnPosition } from "./models/model.ts";
export type { ModelFacts, ModelPrice, TokenPrices } from "./models/model-facts.ts";
export { modelFacts, type PriceOption } from "./models/prices.ts";
export {
  type RecordedTraffic,
  type RecordModelOptions,
  type RecordOptions,
  recordModel,
  recordTraffic,
} from "./models/record.ts";
export { MODEL_PROVIDERS, type ModelObject, type ProviderInfo, resolveModel } from "./models/registry.ts";
export {
  type ReplayedModel,
  type ReplayedTraffic,
  type ReplayModelOptions,
  type ReplayOptions,
  type ReplayReport,
  replayModel,
  replayTraffic,
} from "./models/replay.ts";
export type { UnusedExchange } from "./models/replay-player.ts";
export { loadScript, parseScript, type Script, type ScriptedTurn } from "./models/script.ts";
export { scriptedModel } from "./models/scripted.ts";
export type { ModelTraffic, TrafficPlace, WantedModel } from "./models/traffic.ts";
export type { SessionOptions } from "./options.ts";
export type { AnsweredRequest } from "./people.ts";
export type { AllowedChanges, ChangeOptions } from "./pipeline-changes.ts";
export { bundledPipelines } from "./pipelines/bundled.ts";
export { codeReview } from "./pipelines/code-review.ts";
export { fixTests } from "./pipelines/fix-tests.ts";
export type { RecordPlace } from "./replay-place.ts";
export { type ReplayRunOptions, type RunDivergence, type RunReplay, replayRun } from "./replay-run.ts";
export { type DeniedCall, finished, type RunHandle, type RunResult } from "./run-handle.ts";
export { type ConfigSource, type FileDigest, JOURNAL_VERSION, type PipelineSource, startOf } from "./run-start.ts";
export { probeSandbox } from "./sandbox/sandbox.ts";
export { readSandboxSettings } from "./sandbox/session-sandbox.ts";
export type { SandboxFault, SandboxMode, SandboxSettings } from "./sandbox/wall.ts";
export { createSession, type Session, type StartOptions } from "./session.ts";
export type {
  Activity,
  AttemptPlace,
  ModelCallEnd,
  ModelTokens,
  ObservedModelCall,
  ObservedRun,
  ObservedToolCall,
  RunTelemetry,
  StayEnd,
  Telemetry,
  TelemetryFault,
} from "./telemetry/telemetry.ts";
export { builtinTools } from "./tools/builtin.ts";
export { carriedRipgrep } from "./tools/grep-ripgrep.ts";
export {
  type McpHttpServer,
  type McpServerConfig,
  type McpServerLimits,
  type McpServers,
  type McpStdioServer,
  readMcpServers,
} from "./tools/mcp/config.ts";
export { type McpProbe, type McpProbeOptions, probeMcpServers } from "./tools/mcp/probe.ts";
export type { McpFault } from "./tools/mcp/servers.ts";
export { endProcessesOf } from "./tools/process.ts";
export { type WorkspaceFiles, workspaceFiles } from "./tools/workspace-files.ts";
export { type TranscriptEntry, transcriptEntries } from "./transcript-entries.ts";
