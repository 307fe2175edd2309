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
export {
  type GatewayServer,
  type GatewayServerOptions,
  type Route,
  startGatewayServer,
} from "./mcp/http-server.ts";
export { createMcpHub, type McpHub, type McpOptions } from "./mcp/mcp-server.ts";
export { type StdioOptions, type StdioServer, serveStdio } from "./mcp/stdio.ts";
export { newGatewayToken } from "./mcp/token.ts";
export { agentModel } from "./run/agent-model.ts";
export {
  type AgentSessionOptions,
  type GatewayRunOptions,
  openGatewayRun,
} from "./run/gateway-run.ts";
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
