import type { Clock } from "@sluice/core";
import type { McpSettings } from "../config.ts";
import { type Connection, connect } from "./connection.ts";
import type { McpSdk } from "./sdk.ts";
import { isWalled } from "./server-wall.ts";
import type { McpStart } from "./start.ts";

export interface LinkOptions {
  readonly settings: McpSettings;
  readonly sdk: () => Promise<McpSdk>;
  readonly clock: Clock;
  readonly workspace: string;
  /** Where what ends a server's process at once is kept while there is one. */
  readonly kills: Set<() => void>;
  /** Takes the name of a server whose process runs without a wall. */
  readonly unwalled: Set<string>;
  readonly onFault: (message: string) => void;
}

/** The one connection to a server at a time, made when it is needed. */
export interface Link {
  /** Aborts when the session is closed. */
  readonly closed: AbortSignal;
  /** The connection there is, else a new one, for all who ask at the same time. Rejects with Error when there can be none. */
  reach(): Promise<Connection>;
  /** A call was answered: the server works, and may end as often again. */
  works(): void;
  /** Ends the connection as if there had been none. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export function createLink(options: LinkOptions, { runId, env, wall }: McpStart): Link {
  const { settings, clock, workspace, kills, unwalled } = options;
  // One that was behind a wall is never started again without it.
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
      if (ends >= settings.restarts) throw new Error(`it ended ${often(ends + 1)} and is not started again`);
      ends += 1;
      // The next one may need what the last one holds.
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
      await starting?.catch(() => undefined); // whoever asked for it was told
      await connection?.close();
    },
  };
}

function often(times: number): string {
  return times === 1 ? "once" : `${times} times in a row`;
}
