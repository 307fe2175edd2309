import { redactText } from "@sluice/core";

/** Longer texts are cut: names and ids are short, and what is not ours may be anything. */
const LONGEST = 128;
/** What a span may be named after. Anything else could be as many names as there are calls. */
const NAME = /^[A-Za-z][\w.:@/-]{0,127}$/;

/** A text that is not ours, as an attribute: without what looks like a secret or acts on a terminal, and short. */
export function clean(text: string): string {
  return redactText(text.slice(0, 2 * LONGEST).toWellFormed())
    .replaceAll(/\p{C}/gu, "\uFFFD")
    .slice(0, LONGEST)
    .toWellFormed();
}

/** `execute_tool Read`; the operation alone where the name is none. */
export function spanName(operation: string, name: string): string {
  return NAME.test(name) ? `${operation} ${name}` : operation;
}

/** The semantic conventions' names of the providers that they name; others keep ours. */
const PROVIDERS: Readonly<Record<string, string>> = { google: "gcp.gemini" };
/** What follows in these is a place on this machine. */
const FILES = /^(scripted|replay):/;

/** A model's id as its provider's name and the name it has there. */
export function modelNames(id: string): { readonly provider: string; readonly model: string } {
  const [, played] = FILES.exec(id) ?? [];
  if (played !== undefined) return { provider: played, model: played };
  const slash = id.indexOf("/");
  if (slash < 0) return { provider: clean(id), model: clean(id) };
  const provider = id.slice(0, slash);
  return { provider: PROVIDERS[provider] ?? clean(provider), model: clean(id.slice(slash + 1)) };
}
