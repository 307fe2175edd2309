import { field, isJsonObject, type Json, type JsonObject, type OpenRequest } from "@sluice/core";
import { toldApart } from "@sluice/view/text";

/** A choice on a card. */
export type Option =
  | { readonly kind: "approve" }
  | { readonly kind: "deny" }
  /** Opens the line for a reason. */
  | { readonly kind: "reason" }
  | { readonly kind: "defer" }
  /** Toggles the arguments as JSON, the whole digest and the ids. */
  | { readonly kind: "all" }
  /** `text` is not that of another value of the form. */
  | { readonly kind: "value"; readonly value: Json; readonly text: string }
  /** Opens the line for an answer in words or JSON. */
  | { readonly kind: "write" };

/** How a request can be answered. */
export interface Form {
  readonly options: readonly Option[];
  /** The selection when the card opens: Deny, or none if every choice would be an answer. */
  readonly start: number | undefined;
}

/** Longest list of values that is offered as choices; for a longer one the answer is written. */
const MAX_CHOICES = 50;

const APPROVAL: Form = {
  options: [{ kind: "approve" }, { kind: "deny" }, { kind: "reason" }, { kind: "defer" }, { kind: "all" }],
  start: 1,
};

export function formOf({ kind, body }: OpenRequest): Form {
  if (kind === "grantStageTool" || kind === "approveTransition") return APPROVAL;
  const others: readonly Option[] = [{ kind: "defer" }, { kind: "deny" }, { kind: "all" }];
  const choices = choicesOf(field(body, "answer"));
  if (choices === undefined) return { options: [{ kind: "write" }, ...others], start: 0 };
  return { options: [...valuesOf(choices), ...others], start: undefined };
}

function valuesOf(choices: readonly Json[]): readonly Option[] {
  const texts = toldApart(choices, (value) => (value === true ? "yes" : value === false ? "no" : valueText(value)));
  return choices.map((value, index): Option => ({ kind: "value", value, text: texts[index] ?? "" }));
}

/** The values that a schema allows, if it lists all of them. */
export function choicesOf(schema: Json | undefined): readonly Json[] | undefined {
  if (!isJsonObject(schema)) return undefined;
  const values = valuesIn(schema);
  return values === undefined || values.length === 0 || values.length > MAX_CHOICES ? undefined : values;
}

/** A string as it is, another value as JSON. */
export function valueText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function valuesIn(schema: JsonObject): readonly Json[] | undefined {
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
