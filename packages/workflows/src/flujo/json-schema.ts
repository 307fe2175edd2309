import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { either, jsonSchemaOf } from "../read/json-schema.ts";
import { machineDocumentSchema, machineSchema, stateSchema, stepSchema, stepsDocumentSchema } from "./schema.ts";

/** The JSON Schemas of Flujo documents and of their parts, as definitions that refer to each other. */
export interface FlujoSchemas {
  /** A machine as a document. */
  readonly machineDocument: JsonObject;
  /** A document with steps. */
  readonly stepsDocument: JsonObject;
  readonly definitions: {
    readonly machine: JsonObject;
    readonly state: JsonObject;
    readonly step: JsonObject;
    readonly [name: string]: JsonObject;
  };
}

const STEP = { $ref: "#/definitions/anyStep" };
const STEPS = { type: "array", items: STEP };
const STATE = { anyOf: [STEPS, { $ref: "#/definitions/state" }] };

export function flujoJsonSchemas(): FlujoSchemas {
  const definitions = new Map<string, JsonObject>();
  const part = (schema: Parameters<typeof jsonSchemaOf>[0], filled: Readonly<Record<string, Json>>): JsonObject => {
    const { definitions: own = {}, ...rest } = jsonSchemaOf(schema, "value");
    for (const [name, definition] of Object.entries(isJsonObject(own) ? own : {}))
      if (isJsonObject(definition)) definitions.set(name, definition);
    const properties = isJsonObject(rest.properties) ? { ...rest.properties } : {};
    for (const [name, more] of Object.entries(filled)) {
      const before = properties[name];
      properties[name] = { ...describedAs(before), ...(isJsonObject(more) ? more : {}) };
    }
    return { ...rest, properties };
  };
  const states = { type: "object", additionalProperties: STATE };
  const machineDocument = part(machineDocumentSchema, { states });
  const stepsDocument = part(stepsDocumentSchema, { steps: STEPS });
  const machine = part(machineSchema, { states });
  const state = part(stateSchema, { steps: STEPS });
  const step = part(stepSchema, {});
  const kind = { const: "StateMachine", description: "That the step is a machine." };
  const isMachine = { type: "object", properties: { kind }, required: ["kind"] };
  const anyStep = either(isMachine, { $ref: "#/definitions/machine" }, { $ref: "#/definitions/step" });
  return {
    machineDocument,
    stepsDocument,
    definitions: { ...Object.fromEntries(definitions), machine, state, step, anyStep },
  };
}

function describedAs(schema: Json | undefined): JsonObject {
  return isJsonObject(schema) && typeof schema.description === "string" ? { description: schema.description } : {};
}
