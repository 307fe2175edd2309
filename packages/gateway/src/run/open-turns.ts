import type { AgentTurn, TurnCalls } from "./agent-model.ts";
import type { Thread } from "./transcripts.ts";

/** A turn of a state that waits for calls of the agent. */
export interface OpenTurn extends AgentTurn {
  readonly thread: Thread;
}

export interface OpenTurns {
  readonly isEmpty: boolean;
  /** The turn that gets the next calls: an agent works on one state after the other. */
  readonly first: OpenTurn | undefined;
  /** Resolves with the calls that the turn is given. Rejects if the turn is stopped. */
  open(turn: OpenTurn): Promise<TurnCalls>;
  /** Gives calls to the first turn, which is no longer open then. */
  give(calls: TurnCalls): void;
}

export function createOpenTurns(onOpen: () => void): OpenTurns {
  const turns: { readonly turn: OpenTurn; readonly resolve: (calls: TurnCalls) => void }[] = [];
  return {
    get isEmpty() {
      return turns.length === 0;
    },
    get first() {
      return turns[0]?.turn;
    },
    open: (turn) =>
      new Promise((resolve, reject) => {
        const { signal } = turn;
        const opened = { turn, resolve };
        const close = (): void => {
          const at = turns.indexOf(opened);
          if (at >= 0) turns.splice(at, 1);
          reject(signal?.reason instanceof Error ? signal.reason : new Error("the turn was stopped"));
        };
        if (signal?.aborted === true) {
          close();
          return;
        }
        signal?.addEventListener("abort", close, { once: true });
        turns.push(opened);
        onOpen();
      }),
    give: (calls) => turns.shift()?.resolve(calls),
  };
}
