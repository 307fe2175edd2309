import { digestOf } from "../../base/canonical.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { CompiledSchema } from "../../schema/schema.ts";

/** A part of a definition: its whole value for the fingerprint, and its recorded form. Made with the functions below. */
export interface Part {
  readonly name: string;
  readonly value: Json;
  readonly shown: readonly Fact[];
}
export type Fact = readonly [name: string, value: string];

/** Longer values are recorded as digests. */
const SHORT = 60;
/** A schema with more places is recorded as one digest. */
const MOST_PLACES = 40;
const DIGITS = 12;

/** A text, recorded as it is if it is short. */
export function textPart(name: string, value: string): Part {
  return { name, value, shown: [[name, short(value)]] };
}

/** A value that is recorded as a digest. */
export function digestPart(name: string, value: Json): Part {
  return { name, value, shown: [[name, digest(value)]] };
}

/** A text for each value that is given. */
export function settingParts(name: string, values: object | undefined): readonly Part[] {
  const given = Object.entries(values ?? {}).filter((entry) => entry[1] !== undefined);
  return given.map(([key, value]) => textPart(name === "" ? key : `${name} ${key}`, String(value)));
}

/** A schema, recorded as one short fact per place. */
export function schemaPart(name: string, { jsonSchema, digest: whole }: CompiledSchema<unknown>): Part {
  const places: Fact[] = [];
  const isSmall = addPlaces(places, name, "$", jsonSchema, true);
  return { name, value: whole, shown: isSmall ? places : [[name, `#${whole.slice(0, DIGITS)}`]] };
}

/** Returns false if there are too many places. */
function addPlaces(places: Fact[], name: string, path: string, schema: JsonObject, required: boolean): boolean {
  if (places.length >= MOST_PLACES) return false;
  const { $schema: _dialect, properties, items, required: named, type, ...rest } = schema;
  const more = Object.keys(rest).length === 0 ? "" : ` ${clipped(JSON.stringify(rest), rest)}`;
  const what = typeof type === "string" ? type : type === undefined ? "any" : JSON.stringify(type);
  // A schema describes an object unless it says otherwise.
  if (path !== "$" || what !== "object" || more !== "")
    places.push([`${name} ${short(path)}`, `${short(what)}${required ? "" : ", optional"}${more}`]);
  const needed = new Set(Array.isArray(named) ? named : []);
  for (const [key, member] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const inside = isJsonObject(member) ? member : { is: member };
    if (!addPlaces(places, name, `${path}.${key}`, inside, needed.has(key))) return false;
  }
  if (items === undefined) return true;
  return addPlaces(places, name, `${path}[]`, isJsonObject(items) ? items : { are: items }, true);
}

/** A short digest, as it is recorded. */
export function digest(value: Json): string {
  return `#${digestOf(value).slice(0, DIGITS)}`;
}

export function short(text: string): string {
  return clipped(text, text);
}

function clipped(text: string, value: Json): string {
  return text.length <= SHORT ? text : digest(value);
}
