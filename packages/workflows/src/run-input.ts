import { z } from "zod";

/** The input of every run of a workflow file: a task, and whatever else its templates read. */
export const runInput = z.looseObject({ task: z.string().describe("What the run is to do.").optional() });
