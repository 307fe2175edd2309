import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "@sluice/core";
import type { StoreChange } from "@sluice/core/host";
import { integer } from "./schema.ts";

/** How often to check for other processes' commits. */
const POLL_MS = 25;

/** Notifies listeners of commits: this handle's at once, other handles' by a poll that runs while there are listeners. */
export interface Watch {
  /** Returns the unsubscriber. The poll keeps the process alive. */
  listen(listener: (what: StoreChange) => void): () => void;
  /** Call it after this handle's commits, which SQLite's counter does not show. */
  readonly changed: (what: StoreChange) => void;
  close(): void;
}

export function createWatch(db: DatabaseSync, clock: Clock): Watch {
  const version = db.prepare("PRAGMA data_version");
  const listeners = new Set<(what: StoreChange) => void>();
  let seen = 0;
  let disarm: (() => void) | undefined;

  const changed = (what: StoreChange): void => {
    for (const listener of [...listeners]) listener(what);
  };
  const read = (): number => integer(version.get() ?? {}, "data_version");
  const poll = (): void => {
    disarm = clock.after(POLL_MS, poll);
    let now: number | undefined;
    try {
      now = read();
    } catch {
      // Counts as a change: the listeners' own reads then report the error.
      now = undefined;
    }
    if (now === seen) return;
    seen = now ?? seen;
    changed("any");
  };
  const stop = (): void => {
    disarm?.();
    disarm = undefined;
  };

  return {
    listen(listener) {
      const own = (what: StoreChange): void => listener(what);
      if (listeners.size === 0) {
        seen = read();
        disarm = clock.after(POLL_MS, poll);
      }
      listeners.add(own);
      return () => {
        listeners.delete(own);
        if (listeners.size === 0) stop();
      };
    },
    changed,
    close() {
      listeners.clear();
      stop();
    },
  };
}
