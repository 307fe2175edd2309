export type { AgentSpec } from "./agent/agent-spec.ts";
export { type RouterOptions, router } from "./agent/choosing/router.ts";
export { type MessageKind, sendMessage } from "./agent/messages.ts";
export { progressOf } from "./agent/transcript.ts";
export { type ChangedSince, changedSince, type ForkRunOptions } from "./history/fork.ts";
export type { AllowedChanges, ChangeOptions } from "./history/pipeline-changes.ts";
export type { ConfigSource, FileDigest, PipelineSource } from "./history/run-started.ts";
export { type TranscriptEntry, transcriptEntries } from "./history/transcript.ts";
export type { Command, CommandOptions, ScriptOutput } from "./kinds/commands/command.ts";
export { type Duration, parseDuration } from "./kinds/duration.ts";
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
export { type ChosenModel, chooseModel, type DefaultModel, type ModelChoice } from "./models/default-model.ts";
export type { OutsideAgent, ResolvedModel, TurnPosition } from "./models/model.ts";
export type { ModelFacts, ModelPrice, TokenPrices } from "./models/pricing/price-table.ts";
export type { PriceOption } from "./models/pricing/prices.ts";
export type { HttpAddress } from "./models/providers/http-url.ts";
export type { ModelObject, ProviderInfo, ProviderVariable } from "./models/registry.ts";
export type { Script, ScriptedTurn } from "./models/script.ts";
export { scriptedModel } from "./models/scripted.ts";
export type { ReplayRunOptions, RunDivergence, RunReplay } from "./replay/evaluate-run.ts";
export type { RecordLocation } from "./replay/locate.ts";
export { replayRun } from "./replay/replay-run.ts";
export type { ProgramReach } from "./sandbox/program-sandbox.ts";
export { interruptRun } from "./session/interrupt.ts";
export type { SessionOptions } from "./session/options.ts";
export type { AnsweredRequest } from "./session/people.ts";
export { type DeniedCall, finished, type RunHandle, type RunResult, type Suspension } from "./session/run-handle.ts";
export { createSession, type MessageOptions, type Session, type StartOptions } from "./session/session.ts";
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
export type { CommandJudge, CommandJudgeOptions } from "./tools/bash/bash-tool.ts";
export type {
  McpHttpServer,
  McpServerConfig,
  McpServerLimits,
  McpServers,
  McpStdioServer,
} from "./tools/mcp/config.ts";
export type { McpFault } from "./tools/mcp/servers.ts";
export type { SandboxFault, SandboxMode, SandboxSettings } from "./tools/sandbox.ts";
export type { WorkspaceFiles } from "./tools/search/walk.ts";
