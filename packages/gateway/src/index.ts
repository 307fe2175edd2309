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
