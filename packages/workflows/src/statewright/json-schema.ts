import type { JsonObject } from "@sluice/core";
import { jsonSchemaOf } from "../read/json-schema.ts";
import { statewrightSchema } from "./schema.ts";

/** The JSON Schema of Statewright documents, with every spelling of their fields. */
export function statewrightJsonSchema(): JsonObject {
  return { title: "A Statewright workflow", ...jsonSchemaOf(statewrightSchema, "value") };
}
