import type { JsonObject, ModelSettings } from "@sluice/core";
import { z } from "zod";

const json = z.json();

/** How the model of an agent is called, in every format. */
export const modelFields = {
  reasoning: z
    .enum(["none", "minimal", "low", "medium", "high", "xhigh"])
    .describe("The effort of a reasoning model. Default: the provider's.")
    .optional(),
  tool_choice: z
    .enum(["auto", "required"])
    .describe("`required`: the model has to call a tool in every turn. Default: `auto`.")
    .optional(),
  provider_options: z
    .record(z.string(), z.record(z.string(), json))
    .describe("Options of the provider's package, by provider: `{ openai: { serviceTier: flex } }`.")
    .optional(),
  cache: z.boolean().describe("Whether the provider may cache the prompt. Default: `true`.").optional(),
};

/** The same as options of a stage. Absent fields stay absent. */
export function modelSettings(fields: {
  readonly reasoning?: ModelSettings["reasoning"] | undefined;
  readonly tool_choice?: ModelSettings["toolChoice"] | undefined;
  readonly provider_options?: Readonly<Record<string, JsonObject>> | undefined;
  readonly cache?: boolean | undefined;
}): Pick<ModelSettings, "reasoning" | "toolChoice" | "providerOptions" | "cache"> {
  const { reasoning, tool_choice, provider_options, cache } = fields;
  return {
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(tool_choice === undefined ? {} : { toolChoice: tool_choice }),
    ...(provider_options === undefined ? {} : { providerOptions: provider_options }),
    ...(cache === undefined ? {} : { cache }),
  };
}
