import type { Json } from "@sluice/core";
import { z } from "zod";

/** The input of a run of a workflow file. */
export interface WorkflowInput {
  /** What the run is to do: `{{ctx.task}}`. */
  readonly task?: string;
  /** Whatever else the file's templates read. */
  readonly [key: string]: Json | undefined;
}

/** Its schema: the `input` of the pipeline of every document. */
export const runInput = z.looseObject({ task: z.string().describe("What the run is to do.").optional() });
