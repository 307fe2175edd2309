import { done, pipeline, state } from "@sluice/core";
import { z } from "zod";

/** One sleep of `ms` milliseconds. A worker loads this file too, with the kind of state from its config. */
export const napping = pipeline({
  id: "napping",
  input: z.object({ ms: z.number() }),
  stages: { nap: state({ kind: "nap", output: z.array(z.number()) }) },
  initial: "nap",
  next: { nap: ({ output }) => done(output) },
});
