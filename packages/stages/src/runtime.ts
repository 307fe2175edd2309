// What Sluice's own packages share. Not covered by the promises of the other entries, and not loaded with a session.

export { agentsOf, agentsWithin, providerOptionProblems } from "./agent/agent-spec.ts";
export { forkPointBefore } from "./history/fork.ts";
export { JOURNAL_VERSION, readRunStarted } from "./history/run-started.ts";
export { removeOutputs } from "./kinds/commands/streams.ts";
export { durationText } from "./kinds/duration.ts";
export { stepsOf } from "./kinds/steps-state.ts";
export { DEFAULT_MODELS, DEFAULT_MODELS_DATE } from "./models/default-model.ts";
export { modelFacts } from "./models/pricing/prices.ts";
export { readHttpAddress } from "./models/providers/http-url.ts";
export { MODEL_PROVIDERS, resolveModel } from "./models/registry.ts";
export { loadScript, parseScript } from "./models/script.ts";
export { bundledPipelines } from "./pipelines/bundled.ts";
export { AGENT_GONE } from "./replay/absent-agents.ts";
export { probeSandbox } from "./sandbox/lazy-sandbox.ts";
export { sandboxedProgram } from "./sandbox/program-sandbox.ts";
export { readSandboxSettings } from "./sandbox/session-sandbox.ts";
export { builtinTools } from "./session/tools.ts";
export { commandJudge } from "./tools/bash/bash-tool.ts";
export { endProcessesOf } from "./tools/bash/process.ts";
export { reportingChanges } from "./tools/bash/workspace-diff.ts";
export { predictChange } from "./tools/files/change.ts";
export { fileSubjects } from "./tools/files/paths.ts";
export { readMcpServers } from "./tools/mcp/config.ts";
export { probeMcpServers } from "./tools/mcp/probe.ts";
export { carriedRipgrep } from "./tools/search/grep-ripgrep.ts";
export { workspaceFiles } from "./tools/search/walk.ts";
