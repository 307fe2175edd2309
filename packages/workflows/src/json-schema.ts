import { isJsonObject, type JsonObject } from "@sluice/core";
import { flujoJsonSchemas } from "./flujo/json-schema.ts";
import { statewrightJsonSchema } from "./statewright/json-schema.ts";

/** The JSON Schema (draft-07) of workflow files of every format that is one document: what `@sluice/workflows/schema.json` holds. */
export function workflowJsonSchema(): JsonObject {
  const { definitions: values, ...statewright } = statewrightJsonSchema();
  const { machineDocument, stepsDocument, definitions } = flujoJsonSchemas();
  const all = {
    ...(isJsonObject(values) ? values : {}),
    ...definitions,
    statewright,
    machineDocument,
    stepsDocument,
    stepList: { type: "array", items: { $ref: "#/definitions/anyStep" } },
  };
  const has = (field: string): JsonObject => ({ type: "object", required: [field] });
  const to = (name: keyof typeof all): JsonObject => ({ $ref: `#/definitions/${name}` });
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "A workflow of Sluice",
    if: has("kind"),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: to("machineDocument"),
    else: {
      if: has("steps"),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: to("stepsDocument"),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      else: { if: { type: "array" }, then: to("stepList"), else: to("statewright") },
    },
    definitions: all,
  };
}
