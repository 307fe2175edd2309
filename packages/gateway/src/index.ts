export {
  type GatewayServer,
  type GatewayServerOptions,
  type Route,
  startGatewayServer,
} from "./mcp/http-server.ts";
export { createMcpHub, type McpHub, type McpOptions } from "./mcp/mcp-server.ts";
export { type StdioOptions, type StdioServer, serveStdio } from "./mcp/stdio.ts";
export { newGatewayToken } from "./mcp/token.ts";
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
