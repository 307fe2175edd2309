// What `sluice hook install` writes, per host: data, so that it can be shown before it is done.
import { join } from "node:path";
import type { Json, JsonObject } from "@sluice/core";
import { allEvents, HOOK_EVENTS } from "../../hooks/hook-events.ts";
import type { HostName } from "../../host-names.ts";
import { HOOK_SECONDS, SERVER_NAME, type UserPlaces } from "../host.ts";
import { installedCommand, installedPlugin, type WhenIdle } from "./installed-hook.ts";
import type { JsonEdit } from "./json-text.ts";

export const SCOPES = ["project", "user"] as const;
export type InstallScope = (typeof SCOPES)[number];

export interface InstallRequest {
  readonly host: HostName;
  readonly scope: InstallScope;
  /** The project's folder. */
  readonly workspace: string;
  readonly user: Pick<UserPlaces, "home" | "env">;
  /** The user's folder for Sluice's state. */
  readonly stateFolder: string;
  readonly whenIdle: WhenIdle;
  /** For a host that starts the gateway by itself. */
  readonly server?: InstalledServer;
}

/** The gateway as an MCP server of a host. */
export interface InstalledServer {
  /** See `ownServerName`. */
  readonly name: string;
  /** The command that serves the gateway over stdio. */
  readonly command: readonly string[];
  /** Variables that the command needs, since some hosts pass none on. */
  readonly env: Readonly<Record<string, string>>;
}

/** A change of one file. */
export type FileEdit =
  /** `plain`: the host does not load the file if it has comments or trailing commas. */
  | { readonly kind: "json"; readonly path: string; readonly edits: readonly JsonEdit[]; readonly plain?: true }
  | { readonly kind: "block"; readonly path: string; readonly lines: readonly string[] }
  | { readonly kind: "whole"; readonly path: string; readonly text: string };

/** The files that an installation changes. */
export function installation(request: InstallRequest): readonly FileEdit[] {
  const { host, scope, workspace, user, server } = request;
  const config = (...path: readonly string[]): string => join(scope === "user" ? user.home : workspace, ...path);
  switch (host) {
    case "claude":
      return [
        {
          kind: "json",
          // The local file is not shared with others of the project, who may not have Sluice.
          path: config(".claude", scope === "user" ? "settings.json" : "settings.local.json"),
          plain: true,
          edits: [
            ...hookEdits(request, host, (command, decides) => ({
              type: "command",
              command,
              timeout: HOOK_SECONDS,
              ...(decides ? { onFailure: "block" } : {}),
            })),
            ...(server === undefined || scope === "user"
              ? []
              : [{ path: ["enabledMcpjsonServers"], value: server.name, append: true }]),
          ],
        },
        ...serverEdit(scope === "user" ? undefined : server, join(workspace, ".mcp.json")),
      ];
    case "gemini":
    case "qwen":
      return [
        {
          kind: "json",
          path: config(`.${host}`, "settings.json"),
          edits: [
            ...hookEdits(request, host, (command) => ({
              name: SERVER_NAME,
              type: "command",
              command,
              timeout: HOOK_SECONDS * 1000,
            })),
            ...(server === undefined ? [] : [{ path: ["mcpServers", server.name], value: stdioServer(server) }]),
          ],
        },
      ];
    case "codex": {
      const home = user.env.CODEX_HOME ?? join(user.home, ".codex");
      const folder = scope === "user" ? home : join(workspace, ".codex");
      return [
        {
          kind: "json",
          path: join(folder, "hooks.json"),
          edits: hookEdits(request, host, (command) => ({ type: "command", command, timeout: HOOK_SECONDS })),
        },
        ...(server === undefined ? [] : [codexServer(join(folder, "config.toml"), server)]),
      ];
    }
    case "copilot": {
      const home = user.env.COPILOT_HOME ?? join(user.home, ".copilot");
      const hook = (event: string): Json => [
        { type: "command", bash: commandOf(request, event), timeoutSec: HOOK_SECONDS },
      ];
      const hooks = Object.fromEntries(allEvents("copilot").map((event) => [event, hook(event)]));
      const path =
        scope === "user" ? join(home, "hooks", "sluice.json") : join(workspace, ".github", "hooks", "sluice.json");
      return [
        { kind: "whole", path, text: `${JSON.stringify({ version: 1, hooks }, null, 2)}\n` },
        ...serverEdit(server, scope === "user" ? join(home, "mcp-config.json") : join(workspace, ".mcp.json"), {
          tools: ["*"],
        }),
      ];
    }
    case "opencode": {
      const folder = join(user.env.XDG_CONFIG_HOME ?? join(user.home, ".config"), "opencode");
      const settings = join(scope === "user" ? folder : workspace, "opencode.json");
      return [
        {
          kind: "whole",
          path: join(scope === "user" ? folder : join(workspace, ".opencode"), "plugin", "sluice.js"),
          text: installedPlugin({ ...request, waits: server !== undefined }),
        },
        ...(server === undefined
          ? []
          : [
              {
                kind: "json" as const,
                path: settings,
                edits: [
                  {
                    path: ["mcp", server.name],
                    value: {
                      type: "local",
                      command: [...server.command],
                      environment: { ...server.env },
                      enabled: true,
                    },
                  },
                ],
              },
            ]),
      ];
    }
  }
}

function commandOf({ host, scope, workspace, stateFolder, whenIdle, server }: InstallRequest, event: string): string {
  const decides = host !== "opencode" && HOOK_EVENTS[host].decide.includes(event);
  return installedCommand(host, event, decides, {
    stateFolder,
    whenIdle,
    waits: server !== undefined,
    workspace: scope === "user" ? undefined : workspace,
  });
}

function hookEdits(
  request: InstallRequest,
  host: Exclude<HostName, "opencode">,
  hook: (command: string, decides: boolean) => JsonObject,
): readonly JsonEdit[] {
  const { decide } = HOOK_EVENTS[host];
  return allEvents(host).map((event) => ({
    path: ["hooks", event],
    value: { matcher: "*", hooks: [hook(commandOf(request, event), decide.includes(event))] },
    append: true,
  }));
}

function serverEdit(server: InstalledServer | undefined, path: string, more: JsonObject = {}): readonly FileEdit[] {
  if (server === undefined) return [];
  const value = { ...stdioServer(server), ...more };
  return [{ kind: "json", path, edits: [{ path: ["mcpServers", server.name], value }] }];
}

function stdioServer({ command: [command = "", ...args], env }: InstalledServer): JsonObject {
  return { command, args, env: { ...env } };
}

function codexServer(path: string, { name: server, command: [command = "", ...args], env }: InstalledServer): FileEdit {
  const set = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  return {
    kind: "block",
    path,
    lines: [
      `[mcp_servers.${server}]`,
      `command = ${JSON.stringify(command)}`,
      `args = ${JSON.stringify(args)}`,
      `env = { ${set.join(", ")} }`,
      "# Without the gateway, Codex does not start.",
      "required = true",
      "# Seconds. A call may wait for a person.",
      "startup_timeout_sec = 30",
      "tool_timeout_sec = 3600",
    ],
  };
}
