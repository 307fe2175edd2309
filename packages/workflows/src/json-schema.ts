import { isJsonObject, type JsonObject } from "@sluice/core";
import { flujoJsonSchemas } from "./flujo/json-schema.ts";
import { either, jsonSchemaOf } from "./read/json-schema.ts";
import { statewrightSchema } from "./statewright/schema.ts";

/** The JSON Schema (draft-07) of workflow files of every format that is one document: what `@sluice/workflows/schema.json` holds. */
export function workflowJsonSchema(): JsonObject {
  const { definitions: values, ...fields } = jsonSchemaOf(statewrightSchema, "value");
  const statewright = { title: "A Statewright workflow", ...fields };
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
  const listOrStatewright = either({ type: "array" }, to("stepList"), to("statewright"));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "A workflow of Sluice",
    ...either(has("kind"), to("machineDocument"), either(has("steps"), to("stepsDocument"), listOrStatewright)),
    definitions: all,
  };
}
