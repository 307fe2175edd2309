import { createSecretFilter, type SecretFilter } from "@sluice/core";

/** Finds nothing: for whoever has no secrets. */
export const NO_SECRETS: SecretFilter = createSecretFilter(new Map());

/** At most so many characters of a text, without secrets and without the beginning of one that the cut would leave. */
export function cutText(text: string, longest: number, secrets: SecretFilter): string {
  if (text.length <= longest) return secrets.text(text);
  const cut = text.slice(0, longest);
  return secrets.text(cut.slice(0, cut.length - secrets.begun(cut)));
}

/** An id or a name as it may stand in a transcript: of one that held a secret, only characters that providers accept there. */
export function cleanWord(word: string, secrets: SecretFilter): string {
  const clean = secrets.text(word);
  return clean === word ? word : clean.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}
