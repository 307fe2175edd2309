// What the states of each kind give, for conditions that read it.

import type { Json, JsonObject } from "@sluice/core";
import type { KindState } from "./fields.ts";

const TEXT: JsonObject = { type: "string" };
const NUMBER: JsonObject = { type: "number" };

/** The JSON Schema of the output of a state; undefined if nothing is known about it. */
export function outputOfKind(given: KindState): JsonObject | undefined {
  switch (given.kind) {
    case "script":
      return closed(commandOutput(given.fields.output));
    case "poll":
      return closed({ ...commandOutput(given.fields.output), attempts: NUMBER, elapsedMs: NUMBER });
    case "timer":
      return closed({ elapsedMs: NUMBER, timestamp: NUMBER });
    case "human":
      return embedded(given.fields.answer ?? TEXT);
    default:
      return undefined;
  }
}

function commandOutput(parsed: JsonObject | undefined): JsonObject {
  const streams = { stdout: TEXT, stderr: TEXT, stdoutFile: TEXT, stderrFile: TEXT };
  return { exitCode: NUMBER, ...streams, parsed: embedded(parsed) ?? {} };
}

/** An object with these members and no others. */
export function closed(properties: Readonly<Record<string, Json>>): JsonObject {
  return { type: "object", properties, additionalProperties: false };
}

/** A schema that can stand inside another one, where references would lead elsewhere. */
export function embedded(schema: JsonObject | undefined): JsonObject | undefined {
  return schema === undefined || JSON.stringify(schema).includes('"$ref"') ? undefined : schema;
}
