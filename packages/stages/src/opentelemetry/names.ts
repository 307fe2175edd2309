import type { Json } from "@sluice/core";
import { redactText } from "@sluice/core/runtime";

/** Foreign names may have any length. */
const LONGEST = 128;
/** Names that span names may contain; others could make every span name unique. */
const NAME = /^[A-Za-z][\w.:@/-]{0,127}$/;

/** A foreign text as an attribute: redacted, without control characters, and short. */
export function clean(text: string): string {
  return redactText(text.toWellFormed()).replaceAll(/\p{C}/gu, "\uFFFD").slice(0, LONGEST).toWellFormed();
}

/** A recorded text as an attribute; undefined for any other value. */
export function textIn(value: Json | undefined): string | undefined {
  return typeof value === "string" ? clean(value) : undefined;
}

/** `execute_tool Read`; the operation alone if the name is unusual. */
export function spanName(operation: string, name: string): string {
  return NAME.test(name) ? `${operation} ${name}` : operation;
}

/** The semantic conventions' provider names that differ from ours. */
const PROVIDERS: Readonly<Record<string, string>> = { google: "gcp.gemini" };
/** The rest of these ids is a local path. */
const FILES = /^(scripted|cassette):/;

/** Splits a model's id into the provider's name and the model's name there. */
export function modelNames(id: string): { readonly provider: string; readonly model: string } {
  const [, source] = FILES.exec(id) ?? [];
  if (source !== undefined) return { provider: source, model: source };
  const slash = id.indexOf("/");
  if (slash < 0) return { provider: clean(id), model: clean(id) };
  const provider = id.slice(0, slash);
  return { provider: PROVIDERS[provider] ?? clean(provider), model: clean(id.slice(slash + 1)) };
}
