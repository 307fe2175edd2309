// The model that chooses what follows every state, as files name it.

import type { OrchestratorOptions } from "@sluice/core";
import { z } from "zod";
import type { DocumentPath } from "../diagnostic.ts";

const text = z.string().min(1);

export const orchestratorFields = z
  .strictObject({
    instructions: text.describe("What its model has to achieve. `{{ctx.…}}` is replaced by a value of the run."),
    model: text.describe("The model, instead of the session's.").optional(),
    max_turns_per_choice: z.int().min(1).describe("Model calls allowed for one choice. Default: 8.").optional(),
    acknowledges: z
      .boolean()
      .describe("Whether it is asked for a closing text when the run has ended. Default: true.")
      .optional(),
    fallback: text
      .describe("The state that follows the first time that it does not choose. Without it, the run fails.")
      .optional(),
  })
  .describe(
    "A model that chooses what follows every state, in one transcript over the run. States then have no transitions.",
  );

export type OrchestratorFields = z.output<typeof orchestratorFields>;

/** The options of the orchestrator. `template` gives the full form of templates, `stateId` the id of a state. */
export function orchestratorOf(
  fields: OrchestratorFields,
  { template, stateId }: { template(text: string): string; stateId(name: string): string },
): OrchestratorOptions {
  const { instructions, model, max_turns_per_choice, acknowledges, fallback } = fields;
  return {
    instructions: template(instructions),
    ...(model === undefined ? {} : { model }),
    ...(max_turns_per_choice === undefined ? {} : { maxTurnsPerChoice: max_turns_per_choice }),
    ...(acknowledges === undefined ? {} : { acknowledges }),
    ...(fallback === undefined ? {} : { fallback: { to: stateId(fallback) } }),
  };
}

/** The path of its field in the document, by that of a problem; undefined if the problem is about something else. */
export function orchestratorPath(path: string): DocumentPath | undefined {
  const [found, option] = /^orchestrator(?:\.(\w+))?/u.exec(path) ?? [];
  if (found === undefined) return undefined;
  if (option === undefined) return ["orchestrator"];
  return ["orchestrator", option === "maxTurnsPerChoice" ? "max_turns_per_choice" : option];
}
