import { didYouMean, suggestOneOf } from "@sluice/core/runtime";
import { z } from "zod";

/** The spellings of the fields of an object. */
export interface FieldNames {
  /** The fields as the schema spells them. */
  readonly all: readonly string[];
  /** Whether keys that are not fields are kept. */
  readonly isLoose: boolean;
  /** The field that a key means: its name, its name in camelCase or snake_case, or an alias. */
  fieldOf(key: string): string | undefined;
  isOptional(name: string): boolean;
  /** How many of these keys are fields. */
  known(keys: readonly string[]): number;
}

/** Read once per schema: a long file asks for them at every object. */
const readNames = new WeakMap<z.ZodObject, FieldNames>();

export function fieldNames(schema: z.ZodObject): FieldNames {
  const known = readNames.get(schema);
  if (known !== undefined) return known;
  const names = readFieldNames(schema);
  readNames.set(schema, names);
  return names;
}

function readFieldNames(schema: z.ZodObject): FieldNames {
  const fields = Object.entries<z.core.$ZodType>(schema.shape);
  const spellings = new Map(
    fields.flatMap(([name, field]) => spellingsOf(name, field).map((spelling) => [spelling, name])),
  );
  return {
    all: fields.map(([name]) => name),
    isLoose: schema.def.catchall !== undefined && !(schema.def.catchall instanceof z.ZodNever),
    fieldOf: (key) => spellings.get(key),
    isOptional: (name) => schema.shape[name] instanceof z.ZodOptional,
    known: (keys) => keys.filter((key) => spellings.has(key)).length,
  };
}

/** Every way to write the name of a field, the schema's own first. */
function spellingsOf(name: string, field: z.core.$ZodType): readonly string[] {
  return [...new Set([name, ...aliasesOf(field)].flatMap((word) => [word, camelCase(word), snakeCase(word)]))];
}

/** Other names of a field, from the metadata of its schema. */
function aliasesOf(field: z.core.$ZodType): readonly string[] {
  if (field instanceof z.ZodOptional) return aliasesOf(field.unwrap());
  const { aliases } = z.globalRegistry.get(field) ?? {};
  return Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === "string") : [];
}

/** Fields that other formats and habits call otherwise; of several, the first that the object has is meant. */
const MEANT: ReadonlyMap<string, readonly string[]> = new Map([
  ["prompt", ["instructions"]],
  ["system_prompt", ["instructions", "prompt"]],
  ["instructions", ["prompt"]],
  ["tools", ["allowed_tools", "allowedTools"]],
  ["allowed_tools", ["tools"]],
  ["commands", ["allowed_commands"]],
  ["events", ["on"]],
  ["transitions", ["on"]],
  ["approval", ["requires_approval"]],
  ["max_tool_calls", ["max_iterations"]],
  ["max_turns", ["turn_cap", "turnCap"]],
  ["start", ["initial", "start_state"]],
  ["start_state", ["initial"]],
  ["initial_state", ["initial", "start_state"]],
  ["initial", ["start_state"]],
  ["condition", ["guard", "when"]],
  ["cond", ["guard", "when"]],
  ["when", ["guard"]],
  ["guard", ["when"]],
  ["to", ["target"]],
  ["next", ["target", "to"]],
  ["target", ["to"]],
]);

/** The closest of the known names, as a suggestion. */
export function suggestClosest(word: string, known: Iterable<string>): string | undefined {
  const close = didYouMean(word, known);
  return close === undefined ? undefined : `did you mean ${JSON.stringify(close)}?`;
}

/** A suggestion for an unknown key: the field that is meant, else the list of fields. */
export function suggestField(key: string, known: readonly string[]): string | undefined {
  const meant = MEANT.get(snakeCase(key))?.find((name) => known.includes(name));
  return meant === undefined ? suggestOneOf(key, known) : `did you mean "${meant}"?`;
}

export function camelCase(word: string): string {
  return word.replaceAll(/(?<=[a-z0-9])_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}

function snakeCase(word: string): string {
  return word.replaceAll(/(?<=[a-z0-9])[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}
