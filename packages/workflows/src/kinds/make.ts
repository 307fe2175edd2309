// The functions that define the states of each kind, with the options that files give them.

import { type AnyState, isJsonObject, type Json, state } from "@sluice/core";
import { toJsonValue } from "@sluice/core/runtime";
import type { KindState } from "./fields.ts";

/** How a format writes templates and names. */
export interface KindNames {
  /** The text with its templates as those of a state. */
  template(text: string): string;
  /** The id of a state. */
  stateId(name: string): string | undefined;
  /** The key of a workflow that the file invokes. */
  pipelineKey(name: string): string;
}

export function makeState({ kind, fields }: KindState, names: KindNames): AnyState {
  const options = toJsonValue(fields);
  const given = options.ok && isJsonObject(options.value) ? mapTexts(options.value, names.template) : {};
  return state({ kind, options: isJsonObject(given) ? given : {}, output: { type: "object" } });
}

/** A value with its texts changed. */
function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((entry: Json) => mapTexts(entry, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, mapTexts(entry, change)]));
}
