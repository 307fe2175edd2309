// What Gemini CLI and Qwen Code have in common: arguments, and settings that hold the gateway's server and hooks.
import type { JsonObject } from "@sluice/core";
import { allEvents } from "../hooks/hook-events.ts";
import { HOOK_SECONDS, type LaunchRequest, SERVER_NAME, TOKEN_VARIABLE } from "./host.ts";

/** Milliseconds. A call may wait for a person. */
const CALL_TIMEOUT = 3_600_000;

/** Only the gateway's MCP server, and no extension. */
export function isolated({ server }: LaunchRequest): readonly string[] {
  return [`--allowed-mcp-server-names=${server}`, "--extensions=none"];
}

/** What then has no effect. */
export const IGNORED: readonly string[] = [
  "extensions",
  "MCP servers of the user and the project",
  "settings of the user and the project that contradict the ones of the gateway",
];

/** The gateway's MCP server and further settings. */
export function gatewaySettings({ url, server }: LaunchRequest, settings: JsonObject): JsonObject {
  return {
    mcp: { allowed: [server] },
    mcpServers: {
      [server]: {
        httpUrl: `${url}/mcp`,
        headers: { Authorization: `Bearer $${TOKEN_VARIABLE}` },
        timeout: CALL_TIMEOUT,
        trust: true,
      },
    },
    ...settings,
  };
}

/** A hook for each event, by the event's name. */
export function commandHooks(host: "gemini" | "qwen", { hookCommand }: LaunchRequest): JsonObject {
  return Object.fromEntries(
    allEvents(host).map((event) => {
      const command = hookCommand?.(event) ?? "exit 2";
      const hook = { name: SERVER_NAME, type: "command", command, timeout: HOOK_SECONDS * 1000 };
      return [event, [{ matcher: "*", hooks: [hook] }]];
    }),
  );
}
