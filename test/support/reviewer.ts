import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { done, forEach, type Json, pipeline, type StateExecutor, state } from "@sluice/core";
import { z } from "zod";

/** Items of the list that a process may die in. */
export const ITEMS: readonly string[] = Array.from({ length: 12 }, (_, at) => `src/${at}.ts`);

/** Takes two steps for each item, and writes down in the folder what each of them does. */
export function reviewer(folder: string): StateExecutor {
  return {
    kind: "reviewer",
    act: async (_init, { steps, ctx, executionId }) => {
      for (const part of ["read", "write"])
        await steps.run(
          part,
          () => {
            appendFileSync(join(folder, "done.txt"), `${ctx.runId} ${executionId} ${part}\n`);
            return part;
          },
          // Committed before the step begins.
          { open: { events: [] } },
        );
      return {
        status: "completed",
        output: typeof ctx.input === "string" ? ctx.input : null,
        turns: 0,
        usage: { inputTokens: 0, outputTokens: 0 },
      };
    },
  };
}

export const reviewing = pipeline({
  id: "reviewing",
  input: z.object({}),
  stages: {
    find: state({ kind: "reviewer", output: z.null() }),
    review: state({ kind: "reviewer", inputSchema: z.string(), output: z.string() }),
    join: state({ kind: "reviewer", output: z.null() }),
  },
  initial: "find",
  next: {
    find: () => forEach("review", [...ITEMS], { join: "join", key: (item) => item, maxParallel: 3 }),
    join: (_result, ctx) => done((ctx.items?.review ?? []).map(({ output }): Json => output ?? null)),
  },
});
