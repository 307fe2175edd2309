export { type AgentSpec, agentsOf, agentsWithin } from "./agent/agent-spec.ts";
export { type RouterOptions, router } from "./agent/choosing/router.ts";
export { agentExecutor } from "./agent/executor.ts";
export { type MessageKind, sendMessage } from "./agent/messages.ts";
export { type ChangedSince, changedSince, type ForkRunOptions, forkPointBefore } from "./history/fork.ts";
export type { AllowedChanges, ChangeOptions } from "./history/pipeline-changes.ts";
export {
  type ConfigSource,
  type FileDigest,
  JOURNAL_VERSION,
  type PipelineSource,
  readRunStarted,
} from "./history/run-started.ts";
export { type TranscriptEntry, transcriptEntries } from "./history/transcript.ts";
export type { Command, CommandOptions, ScriptOutput } from "./kinds/commands/command.ts";
export { removeOutputs } from "./kinds/commands/streams.ts";
export { type Duration, durationText, parseDuration } from "./kinds/duration.ts";
export { type HumanOptions, human } from "./kinds/human.ts";
export type { KindCommon } from "./kinds/kind-common.ts";
export { type PollOptions, type PollOutput, poll } from "./kinds/poll.ts";
export { type ScriptOptions, script } from "./kinds/script.ts";
export {
  type AskStep,
  type ContextPath,
  type RunStep,
  type SavedOutput,
  type Step,
  type StepsOptions,
  stepsOf,
  stepsState,
} from "./kinds/steps-state.ts";
export { type SubPipelineOptions, subPipeline } from "./kinds/sub-pipeline.ts";
export { type TimerOptions, type TimerOutput, type TimerTime, timer } from "./kinds/timer.ts";
export {
  type PlaybackModel,
  type PlaybackModelOptions,
  type PlaybackOptions,
  type PlaybackReport,
  type PlaybackTraffic,
  playbackModel,
  playbackTraffic,
} from "./models/cassettes/playback.ts";
export type { UnusedExchange } from "./models/cassettes/playback-player.ts";
export {
  type RecordedTraffic,
  type RecordModelOptions,
  type RecordOptions,
  recordModel,
  recordTraffic,
} from "./models/cassettes/record.ts";
export type { ModelTraffic, TrafficScope, WantedModel } from "./models/cassettes/traffic.ts";
export {
  type ChosenModel,
  chooseModel,
  DEFAULT_MODELS,
  DEFAULT_MODELS_DATE,
  type DefaultModel,
  type ModelChoice,
} from "./models/default-model.ts";
export type { OutsideAgent, ResolvedModel, TurnPosition } from "./models/model.ts";
export type { ModelFacts, ModelPrice, TokenPrices } from "./models/pricing/price-table.ts";
export { modelFacts, type PriceOption } from "./models/pricing/prices.ts";
export { providerOptionProblems } from "./models/provider-options.ts";
export { type HttpAddress, readHttpAddress } from "./models/providers/http-url.ts";
export { MODEL_PROVIDERS, type ModelObject, type ProviderInfo, resolveModel } from "./models/registry.ts";
export { loadScript, parseScript, type Script, type ScriptedTurn } from "./models/script.ts";
export { scriptedModel } from "./models/scripted.ts";
export { bundledPipelines } from "./pipelines/bundled.ts";
export { AGENT_GONE } from "./replay/absent-agents.ts";
export type { RecordLocation } from "./replay/locate.ts";
export { type ReplayRunOptions, type RunDivergence, type RunReplay, replayRun } from "./replay/replay-run.ts";
export { probeSandbox } from "./sandbox/lazy-sandbox.ts";
export { type ProgramReach, sandboxedProgram } from "./sandbox/program-sandbox.ts";
export { readSandboxSettings } from "./sandbox/session-sandbox.ts";
export { interruptRun } from "./session/interrupt.ts";
export type { SessionOptions } from "./session/options.ts";
export type { AnsweredRequest } from "./session/people.ts";
export { type DeniedCall, finished, type RunHandle, type RunResult } from "./session/run-handle.ts";
export { createSession, type MessageOptions, type Session, type StartOptions } from "./session/session.ts";
export { builtinTools } from "./session/tools.ts";
export type {
  Activity,
  ActivityEnd,
  AttemptScope,
  ModelCallEnd,
  ModelTokens,
  ObservedModelCall,
  ObservedRun,
  ObservedToolCall,
  RunTelemetry,
  Telemetry,
  TelemetryFault,
} from "./telemetry/telemetry.ts";
export { type CommandJudge, type CommandJudgeOptions, commandJudge } from "./tools/bash/bash-tool.ts";
export { endProcessesOf } from "./tools/bash/process.ts";
export { reportingChanges } from "./tools/bash/workspace-diff.ts";
export { predictChange } from "./tools/files/change.ts";
export { fileSubjects } from "./tools/files/paths.ts";
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
export type { SandboxFault, SandboxMode, SandboxSettings } from "./tools/sandbox.ts";
export { carriedRipgrep } from "./tools/search/grep-ripgrep.ts";
export { type WorkspaceFiles, workspaceFiles } from "./tools/search/walk.ts";
