// What Sluice's own packages share. Not covered by the promises of the other entries, and not loaded with a session.

export { agentsOf, agentsWithin, MODEL_KINDS, providerOptionProblems } from "./agent/agent-spec.ts";
export { forkPointBefore } from "./history/fork.ts";
export { JOURNAL_VERSION } from "./history/run-started.ts";
export { recordedEntries } from "./history/transcript.ts";
export { durationText } from "./kinds/duration.ts";
export { cancelled, completed, failed } from "./kinds/kind-common.ts";
export { stepsOf } from "./kinds/steps-state.ts";
export { readPointInTime } from "./kinds/timer.ts";
export { DEFAULT_MODELS, DEFAULT_MODELS_DATE } from "./models/default-model.ts";
export { modelFacts } from "./models/pricing/prices.ts";
export { readHttpAddress } from "./models/providers/http-url.ts";
export { MODEL_PROVIDERS, resolveModel } from "./models/registry.ts";
export { parseScript } from "./models/script.ts";
export { bundledPipelines, loadCodeReview } from "./pipelines/bundled.ts";
export { AGENT_GONE } from "./replay/absent-agents.ts";
export { moveAwayLeft, probeSandbox, readSandboxSettings, SANDBOX_MODES } from "./sandbox/session-sandbox.ts";
export { builtinTools } from "./tools/builtin-tools.ts";
export { outsideFirst } from "./tools/files/paths.ts";
export { startedFiles } from "./tools/files/started-files.ts";
export { readMcpServers } from "./tools/mcp/config.ts";
