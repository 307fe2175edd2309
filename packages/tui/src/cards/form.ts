import { field, isJsonObject, type Json, type JsonObject, type OpenRequest } from "@sluice/core";

/** One thing a person can do with a card. */
export type Option =
  | { readonly kind: "approve" }
  | { readonly kind: "deny" }
  /** Opens the line for a reason. */
  | { readonly kind: "reason" }
  | { readonly kind: "defer" }
  /** Shows arguments as JSON, the whole digest and the ids too, or less again. */
  | { readonly kind: "all" }
  /** Answers with this value. */
  | { readonly kind: "value"; readonly value: Json }
  /** Opens the line for an answer in words or JSON. */
  | { readonly kind: "write" };

/** How a request can be answered. */
export interface Form {
  readonly options: readonly Option[];
  /** What is selected when the card comes up: what does least, and nothing where any choice would be an answer. */
  readonly start: number | undefined;
}

/** Choices of a list that are shown as one; a longer one is typed. */
const MOST_CHOICES = 50;

const LEAVE: Form = {
  options: [{ kind: "approve" }, { kind: "deny" }, { kind: "reason" }, { kind: "defer" }, { kind: "all" }],
  start: 1,
};

export function formOf({ kind, body }: OpenRequest): Form {
  if (kind === "grantStageTool" || kind === "approveTransition") return LEAVE;
  const rest: readonly Option[] = [{ kind: "defer" }, { kind: "deny" }, { kind: "all" }];
  const choices = choicesOf(field(body, "answer"));
  if (choices === undefined) return { options: [{ kind: "write" }, ...rest], start: 0 };
  return { options: [...choices.map((value): Option => ({ kind: "value", value })), ...rest], start: undefined };
}

/** The values a schema lists, when it lists all of them. */
export function choicesOf(schema: Json | undefined): readonly Json[] | undefined {
  if (!isJsonObject(schema)) return undefined;
  const listed = listedIn(schema);
  return listed === undefined || listed.length === 0 || listed.length > MOST_CHOICES ? undefined : listed;
}

/** A choice as text: words as they are, anything else as JSON. */
export function valueText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function listedIn(schema: JsonObject): readonly Json[] | undefined {
  const listed = field(schema, "enum");
  if (isList(listed)) return listed;
  const only = field(schema, "const");
  if (only !== undefined) return [only];
  if (field(schema, "type") === "boolean") return [true, false];
  const cases = field(schema, "anyOf") ?? field(schema, "oneOf");
  if (!isList(cases)) return undefined;
  const values = cases.flatMap((one) => {
    const value = field(one, "const");
    return value === undefined ? [] : [value];
  });
  return values.length === cases.length ? values : undefined;
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
