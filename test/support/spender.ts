import { done, pipeline, type StateExecutor, type StepCall, state } from "@sluice/core";
import { z } from "zod";

/** The tokens that one call can use, and uses. */
const CALL = { inputTokens: 30, outputTokens: 10 };
const CAP = 100;

/** A kind of state that makes three calls, each in a step that reserves what it can use. `call` does the work of one. */
export function spender(call: (id: string) => void): StateExecutor {
  return {
    kind: "spender",
    act: async (_init, { steps, budget }) => {
      const outcomes: string[] = [];
      for (const id of ["first", "second", "third"]) {
        const spend = ({ opened }: StepCall): string => {
          if (opened?.incarnation !== steps.incarnation) return "lost";
          const hit = budget.reserve(CALL);
          if (hit !== undefined) return hit.message;
          call(id);
          return "spent";
        };
        const cost = (outcome: string) => (outcome === "spent" ? CALL : undefined);
        outcomes.push(await steps.run(id, spend, { open: { events: [], cost: CALL }, cost }));
      }
      return { status: "completed", output: outcomes, turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
    },
  };
}

export const spending = pipeline({
  id: "spending",
  input: z.object({}),
  limits: { maxTokens: CAP },
  stages: { spend: state({ kind: "spender", output: z.array(z.string()) }) },
  initial: "spend",
  next: { spend: ({ output }) => done(output) },
});
