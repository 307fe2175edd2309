import type { Clock } from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";
import type { McpSettings } from "../config.ts";
import { type Connection, connect } from "./connection.ts";
import type { McpSdk } from "./sdk.ts";
import { isWalled, type ServerWall } from "./server-wall.ts";

/** What a server's start takes from the run that needs it first. */
export interface McpStart {
  /** The server's child processes are found by this run. */
  readonly runId: string;
  /** The environment of the server's process, without the session's secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Redacts the server's messages. */
  readonly secrets: Pick<SecretFilter, "text">;
  /** The session's sandbox for servers. */
  readonly wall?: ServerWall;
}

export interface LinkOptions {
  readonly settings: McpSettings;
  readonly sdk: () => Promise<McpSdk>;
  readonly clock: Clock;
  readonly workspace: string;
  /** Functions that kill running servers at once. */
  readonly kills: Set<() => void>;
  /** Collects the names of servers that run outside the sandbox. */
  readonly unwalled: Set<string>;
  readonly onFault: (message: string) => void;
}

/** The single connection to a server, opened on demand. */
export interface Link {
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
  /** Returns the open connection, or opens one for all concurrent callers. Rejects with Error. */
  reach(): Promise<Connection>;
  /** Resets the count of restarts after an answered call. */
  works(): void;
  /** Closes the connection without counting a restart. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export function createLink(options: LinkOptions, { runId, env, wall }: McpStart): Link {
  const { settings, clock, workspace, kills, unwalled } = options;
  // A server that ran in the sandbox is never restarted outside it.
  const isHeld = "command" in settings.config && isWalled(settings.config, wall);
  const held = isHeld ? wall : undefined;
  if ("command" in settings.config && !isHeld) unwalled.add(settings.name);
  const closing = new AbortController();
  const { signal } = closing;
  let connection: Connection | undefined;
  let starting: Promise<Connection> | undefined;
  let ends = 0;

  const start = async (): Promise<Connection> => {
    if (connection !== undefined) {
      if (ends >= settings.restarts) throw new Error(`it ended ${often(ends + 1)} and is not restarted`);
      ends += 1;
      // The next process may need resources of the last one.
      await connection.close();
    }
    const sdk = await options.sdk();
    if (signal.aborted) throw new Error("the session was closed");
    const { onFault: notice } = options;
    connection = await connect({ settings, sdk, clock, workspace, env, runId, kills, notice, signal, wall: held });
    return connection;
  };

  return {
    closed: signal,
    reach: async () => {
      if (connection !== undefined && connection.end === undefined) return connection;
      starting ??= start().finally(() => {
        starting = undefined;
      });
      return await starting;
    },
    works: () => {
      ends = 0;
    },
    reset: async () => {
      const before = connection;
      connection = undefined;
      await before?.close();
    },
    close: async () => {
      closing.abort();
      await starting?.catch(() => undefined); // reported to its caller
      await connection?.close();
    },
  };
}

function often(times: number): string {
  return times === 1 ? "once" : `${times} times in a row`;
}
