import {
  type AllowedTool,
  done,
  type Json,
  type Pipeline,
  pipeline,
  SluiceError,
  type StateLimits,
  stage,
} from "@sluice/core";
import type { JournalStore } from "@sluice/core/host";
import type { ResolvedModel } from "@sluice/stages";
import { z } from "zod";
import { finish, modelFrom, part } from "./stream-model.ts";

// Runs that stop in the middle: a stage, a model that calls what its script says, and a store that fails for a step.

export interface WorkOptions {
  readonly id?: string;
  readonly prompt?: string;
  /** Left out, the session's mode decides. */
  readonly allowedTools?: readonly AllowedTool[] | undefined;
  readonly maxTokens?: number | undefined;
  /** Of the stage. */
  readonly limits?: StateLimits;
}

/** A pipeline of one stage, `work`, that gives its text. */
export function working(options: WorkOptions = {}): Pipeline<{ task: string }, string> {
  const { id = "working", prompt = "Work.", allowedTools, maxTokens, limits } = options;
  const work = stage({
    prompt,
    ...(allowedTools === undefined ? {} : { allowedTools }),
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 9,
    ...(limits === undefined ? {} : { limits }),
  });
  return pipeline({
    id,
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    ...(maxTokens === undefined ? {} : { limits: { maxTokens } }),
    next: { work: ({ output }) => done(output.text) },
  });
}

/** A model that makes these calls, one a turn, and then finishes. */
export function calling(calls: readonly (readonly [tool: string, input: Json])[], usage?: object): ResolvedModel {
  return {
    id: "attacker",
    secrets: [],
    at: ({ turn }) =>
      modelFrom(() => {
        const [toolName, input] = calls[turn] ?? ["finish", { text: "done" }];
        const call = part({ type: "tool-call", toolCallId: `c${turn}`, toolName, input: JSON.stringify(input) });
        return Promise.resolve(ReadableStream.from([call, finish("tool-calls", usage)]));
      }),
  };
}

/** A store that fails for records of this step, as a full disk does. */
export function failingAt(store: JournalStore, step: RegExp, phase?: "open" | "done"): JournalStore {
  return {
    ...store,
    append: (commit) => {
      const { record } = commit;
      if (step.test(record.stepId) && (phase === undefined || record.phase === phase))
        throw new SluiceError("Host", "store_io", "the disk failed");
      return store.append(commit);
    },
  };
}
