export type {
  AcpPipelines,
  AcpRun,
  AcpWorkspace,
  OpenWorkspace,
  SessionStore,
  StoredSession,
} from "./acp/acp-workspace.ts";
export { type AcpServerOptions, serveAcp } from "./acp/serve-acp.ts";
