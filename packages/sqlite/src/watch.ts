import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "@sluice/core";
import { integer } from "./schema.ts";

/** How often other processes' commits are looked for. */
const POLL_MS = 25;

/** Tells listeners about commits: this handle's at once, everybody else's by a poll that runs only while somebody listens. */
export interface Watch {
  /** Returns the unsubscriber. The poll keeps the process alive: whoever listens is waiting for something. */
  listen(listener: () => void): () => void;
  /** This handle committed; SQLite's counter does not show it. */
  readonly changed: () => void;
  close(): void;
}

export function createWatch(db: DatabaseSync, clock: Clock): Watch {
  const version = db.prepare("PRAGMA data_version");
  const listeners = new Set<() => void>();
  let seen = 0;
  let disarm: (() => void) | undefined;

  const changed = (): void => {
    for (const listener of [...listeners]) listener();
  };
  const read = (): number => integer(version.get() ?? {}, "data_version");
  const poll = (): void => {
    disarm = clock.after(POLL_MS, poll);
    let now: number | undefined;
    try {
      now = read();
    } catch {
      // A store that cannot be read has changed, too: the listeners' own calls meet the error and can report it.
      now = undefined;
    }
    if (now === seen) return;
    seen = now ?? seen;
    changed();
  };
  const stop = (): void => {
    disarm?.();
    disarm = undefined;
  };

  return {
    listen(listener) {
      const own = (): void => listener();
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
