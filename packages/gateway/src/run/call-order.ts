import type { CallInFlight, Turn } from "./call-in-flight.ts";
import type { OpenQuestions } from "./open-questions.ts";
import type { OpenTurns } from "./open-turns.ts";

/** What goes first in a run: an agent works on one state after the other, and an approved call runs before another one. */
export interface First {
  readonly turn: Turn;
  /** The call that the state waits for, if that was approved and the agent's program has to make it again. */
  readonly call?: CallInFlight;
}

/** The order of an agent's calls in a run whose states may be parallel. */
export interface CallOrder {
  first(): First | undefined;
  /** What a call has to wait for; undefined if it can continue, or waits for a person. */
  heldBy(call: CallInFlight): First | undefined;
  /** Whether the agent has read that a call waits for the state whose turn it is: the same call is one of that state. */
  isOfOtherTurn(call: CallInFlight): boolean;
}

interface Ordered {
  /** The calls that the run has. */
  readonly calls: ReadonlyMap<string, CallInFlight>;
  readonly turns: Pick<OpenTurns, "first">;
  readonly requests: Pick<OpenQuestions, "first">;
}

export function createCallOrder({ calls, turns, requests }: Ordered): CallOrder {
  const first = (): First | undefined => {
    const { first: turn } = turns;
    if (turn !== undefined) return { turn };
    const call = [...calls.values()].find(({ caller, progress }) => caller === undefined && progress.kind === "handed");
    return call?.place && { turn: call.place, call };
  };
  const heldBy = ({ place, progress }: CallInFlight): First | undefined => {
    const before = first();
    if (place === undefined) return before?.call && before;
    const isBehind = before?.call !== undefined || before?.turn.runId !== place.runId;
    return isBehind && progress.kind === "given" && requests.first(place.runId) === undefined ? before : undefined;
  };
  return {
    first,
    heldBy,
    isOfOtherTurn: (call) => {
      const { turn, call: approved } = heldBy(call) ?? {};
      const { runId, executionId } = call.waitsFor ?? {};
      return turn !== undefined && approved === undefined && turn.runId === runId && turn.executionId === executionId;
    },
  };
}
