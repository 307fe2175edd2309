import { addUsage, field, type SluiceEvent, type Usage } from "@sluice/core";
import { textAt, usageAt } from "../fields.ts";

/** One execution of a state, as far as the events tell. */
export type StageAccount = {
  readonly runId: string;
  readonly executionId: string;
  /** `unfinished` while it has not been left. */
  status: string;
  attempts: number;
  turns: number;
  usage: Usage;
  ms: number;
};
/** A call that was refused. */
export type DeniedAccount = {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: string;
};

/** What a run and its children did so far, added up from their events: also for runs that have no end yet. */
export interface Account {
  readonly stages: readonly StageAccount[];
  readonly denied: readonly DeniedAccount[];
  readonly usage: Usage;
}

const NONE: Usage = { inputTokens: 0, outputTokens: 0 };

export interface Accountant {
  add(event: SluiceEvent): void;
  account(): Account;
}

export function createAccountant(): Accountant {
  const stages = new Map<string, StageAccount & { startedAt: number }>();
  const denied: DeniedAccount[] = [];

  const stageOf = ({ runId, executionId, at }: SluiceEvent): (StageAccount & { startedAt: number }) | undefined => {
    if (executionId === undefined) return undefined;
    const key = JSON.stringify([runId, executionId]);
    let stage = stages.get(key);
    if (stage === undefined) {
      stage = { runId, executionId, status: "unfinished", attempts: 1, turns: 0, usage: NONE, ms: 0, startedAt: at };
      stages.set(key, stage);
    }
    return stage;
  };

  return {
    add(event) {
      const { type, data, executionId = "", attempt = 1, runId } = event;
      const stage = stageOf(event);
      if (stage === undefined) return;
      stage.attempts = Math.max(stage.attempts, attempt);
      stage.ms = event.at - stage.startedAt;
      if (type === "turn.finished") {
        stage.turns += 1;
        stage.usage = addUsage(stage.usage, usageAt(data));
      } else if (type === "stage.exit" && field(data, "phase") === "left") {
        stage.status = textAt(data, "outcome");
        // It has a usage where there is more to it than its turns.
        if (field(data, "usage") !== undefined) stage.usage = usageAt(data);
      } else if (
        type === "call.decided" &&
        field(data, "verdict") === "refused" &&
        field(data, "cause") !== undefined
      ) {
        const call = { callId: textAt(data, "callId"), tool: textAt(data, "tool"), cause: textAt(data, "cause") };
        denied.push({ runId, executionId, attempt, ...call });
      }
    },
    account() {
      const all = [...stages.values()].map(({ startedAt: _startedAt, ...stage }) => stage);
      return { stages: all, denied, usage: all.reduce((sum, stage) => addUsage(sum, stage.usage), NONE) };
    },
  };
}
