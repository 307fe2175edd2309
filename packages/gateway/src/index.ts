export type {
  AcpPipelines,
  AcpRun,
  AcpWorkspace,
  OpenWorkspace,
  SessionStore,
  StoredSession,
} from "./acp/acp-workspace.ts";
export type { AcpHost } from "./acp/external/agent-host.ts";
export {
  agentModelId,
  type ExternalAgent,
  type ExternalAgentOptions,
  externalAgent,
} from "./acp/external/external-agent.ts";
export { type ExternalAgentsOptions, externalAgents } from "./acp/external/external-agents.ts";
export { type AcpServerOptions, serveAcp } from "./acp/serve-acp.ts";
export { hookAdapter } from "./hooks/adapters.ts";
export { type HookProof, newHookProof } from "./hooks/answer-proof.ts";
export type {
  AdapterOptions,
  CallEvent,
  HookAdapter,
  HookAnswer,
  HookDecision,
  HookEvent,
  LifeEvent,
  MappedCall,
  PromptEvent,
  ReportEvent,
  Rewrites,
} from "./hooks/hook-adapter.ts";
export { type HookRoutesOptions, hookRoutes } from "./hooks/hook-routes.ts";
export { type LauncherOptions, launcherCommand, launcherScript } from "./hooks/launcher.ts";
export { opencodePlugin } from "./hooks/opencode-plugin.ts";
export { type HandOver, type NativeToolsOptions, nativeTools, REFUSED_TOOL } from "./hooks/tools/native-tools.ts";
export { HOST_NAMES, type HostName } from "./host-names.ts";
export {
  type Examination,
  type ExamineOptions,
  examineHost,
  type Finding,
  type HookFiles,
  type Outcome,
} from "./hosts/doctor/examine-host.ts";
export { HEADLESS, type Headless, type NativeCalls } from "./hosts/doctor/headless.ts";
export { hostProofs, type ProofKey } from "./hosts/doctor/proofs.ts";
export {
  type ScriptedModel,
  type ScriptedRequest,
  type Scripts,
  startScriptedModel,
} from "./hosts/doctor/scripted-model.ts";
export {
  type HostClass,
  type HostForm,
  type LaunchPlan,
  type LaunchRequest,
  TOKEN_VARIABLE,
  type UserPlaces,
} from "./hosts/host.ts";
export type { FileChange } from "./hosts/install/changes.ts";
export { type CodexTrust, type CodexTrustOptions, codexTrust, trustCodexHooks } from "./hosts/install/codex-trust.ts";
export { noteChange, type PlannedChange, planInstall, planRemove, removeLeft } from "./hosts/install/install-hooks.ts";
export type { InstalledServer, InstallRequest, InstallScope } from "./hosts/install/installation.ts";
export { HOOK_MARKER, type WhenIdle } from "./hosts/install/installed-hook.ts";
export { ownServerName } from "./hosts/install/own-server.ts";
export { hookFolder, type PublishedHooks, publishHooks } from "./hosts/install/published-hooks.ts";
export { hostSettingsFiles } from "./hosts/install/settings-files.ts";
export { HOSTS, hookClass, launchPlan, reaches } from "./hosts/launch-plan.ts";
export { privateFolder, type StartedHost, type StartOptions, startHost } from "./hosts/start-host.ts";
export { userPlaces } from "./hosts/user-places.ts";
export { readVersion } from "./hosts/version.ts";
export { type GatewayServer, type GatewayServerOptions, startGatewayServer } from "./mcp/http-server.ts";
export { createMcpHub, type McpHub, type McpOptions } from "./mcp/mcp-server.ts";
export type { Route } from "./mcp/route.ts";
export { type StdioOptions, type StdioServer, serveStdio } from "./mcp/stdio.ts";
export { newGatewayToken } from "./mcp/token.ts";
export { agentModel } from "./run/agent-model.ts";
export { type AgentSessionOptions, type GatewayRunOptions, openGatewayRun } from "./run/gateway-run.ts";
export type {
  AgentCall,
  CallReply,
  GatewayRun,
  GatewayTool,
  NativeVerdict,
  OpenQuestion,
  PendingCall,
  PhaseNow,
} from "./run/gateway-run-types.ts";
