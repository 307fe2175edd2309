import { field, type GuardHook, type RunJournal } from "@sluice/core";
import { readVerdicts } from "@sluice/core/runtime";
import { parseAgentStep } from "../agent/agent-steps.ts";

/** Why a call of another program's agent is vetoed after the process that it was made in has ended. */
export const AGENT_GONE = "the agent that made this call has gone; it has to make the call again";

/**
 * The guard hook with the recorded vetoes of calls whose agent had gone: they follow from the end of a process, which a replay
 * cannot decide again.
 */
export function withAbsentAgents(
  recorded: readonly RunJournal[],
  onCall: GuardHook | undefined,
): GuardHook | undefined {
  const vetoed = new Set<string>();
  for (const { runId, records } of recorded)
    for (const { stepId, value } of records) {
      // Most records are of other steps, and are not parsed.
      const step = value.includes(AGENT_GONE) ? parseAgentStep(stepId) : undefined;
      if (step?.kind !== "calls") continue;
      for (const { id, verdict } of readVerdicts(value) ?? [])
        if (verdict.kind === "refused" && field(verdict.output, "reason") === AGENT_GONE)
          vetoed.add(keyOf(runId, step.executionId, step.attempt, id));
    }
  if (vetoed.size === 0) return onCall;
  return (call, ctx) => {
    const { executionId, attempt, proposalId } = call;
    if (vetoed.has(keyOf(ctx.runId, executionId, attempt, proposalId))) return { veto: AGENT_GONE };
    return onCall?.(call, ctx);
  };
}

function keyOf(runId: string, executionId: string, attempt: number, id: string): string {
  return JSON.stringify([runId, executionId, attempt, id]);
}
