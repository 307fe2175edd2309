import { loadPackage } from "../../../models/providers/settings.ts";

/** The used part of the package. */
export type McpSdk = Pick<
  typeof import("@ai-sdk/mcp"),
  "createMCPClient" | "MCPClientError" | "validateJSONRPCMessage"
>;

/** Loads the MCP package, only if a server is needed. */
export async function loadMcpSdk(): Promise<McpSdk> {
  const why = "MCP servers need the package @ai-sdk/mcp, which is not installed";
  return await loadPackage("mcp_not_installed", "@ai-sdk/mcp", () => import("@ai-sdk/mcp"), why);
}
