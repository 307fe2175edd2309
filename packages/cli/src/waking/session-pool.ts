import type { Clock } from "@sluice/core";
import type { Session } from "@sluice/stages";

/** How long a session without runs is kept: its servers and its sandbox are ready for the next run that wakes. */
const KEPT_MS = 60_000;

interface Pooled {
  readonly session: Session;
  runs: number;
  disarm: () => void;
}

/** The sessions of a waker: runs with the same settings share one. */
export interface SessionPool {
  /** A session for one run; `settle` gives it back. Without a key, the session is the run's own. */
  take(key: string | undefined, open: () => Session): { readonly session: Session; settle(): Promise<void> };
  /** Closes all sessions. */
  close(): Promise<void>;
}

export function createSessionPool(clock: Clock, onFault: (thrown: unknown) => void): SessionPool {
  const pooled = new Map<string, Pooled>();
  const own = new Set<Session>();
  const close = async (session: Session): Promise<void> => {
    try {
      await session.close();
    } catch (thrown) {
      onFault(thrown);
    }
  };
  return {
    take: (key, open) => {
      if (key === undefined) {
        const session = open();
        own.add(session);
        const settle = async (): Promise<void> => {
          own.delete(session);
          await close(session);
        };
        return { session, settle };
      }
      const known = pooled.get(key);
      const one = known ?? { session: open(), runs: 0, disarm: () => undefined };
      pooled.set(key, one);
      one.runs += 1;
      one.disarm();
      const settle = async (): Promise<void> => {
        one.runs -= 1;
        if (one.runs > 0 || pooled.get(key) !== one) return;
        one.disarm = clock.after(KEPT_MS, () => {
          pooled.delete(key);
          void close(one.session);
        });
      };
      return { session: one.session, settle };
    },
    close: async () => {
      const all = [...pooled.values()];
      for (const { disarm } of all) disarm();
      pooled.clear();
      await Promise.all([...all.map(({ session }) => session), ...own].map(close));
    },
  };
}
