import type { RunHost } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";

/** Looks at a store from this process, whichever processes work on it. */
export async function lookAt<T>(store: string, look: (host: RunHost) => Promise<T>): Promise<T> {
  const host = sqliteHost(store, { readOnly: true });
  try {
    return await look(host);
  } finally {
    await host.close();
  }
}
