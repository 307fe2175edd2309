import { SluiceError } from "@sluice/core";

/** The used part of the package. */
export type McpSdk = Pick<
  typeof import("@ai-sdk/mcp"),
  "createMCPClient" | "MCPClientError" | "validateJSONRPCMessage"
>;

/** Loads the MCP package, only if a server is needed. */
export async function loadMcpSdk(): Promise<McpSdk> {
  try {
    return await import("@ai-sdk/mcp");
  } catch (cause) {
    const missing =
      cause instanceof Error &&
      "code" in cause &&
      cause.code === "ERR_MODULE_NOT_FOUND" &&
      cause.message.includes("'@ai-sdk/mcp'");
    if (!missing) throw cause;
    const message = "MCP servers need the package @ai-sdk/mcp, which is not installed; run: npm install @ai-sdk/mcp";
    throw new SluiceError("Session", "mcp_not_installed", message, { detail: { package: "@ai-sdk/mcp" }, cause });
  }
}
