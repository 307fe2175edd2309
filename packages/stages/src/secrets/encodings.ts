import type { SignalMessage } from "@sluice/core";
import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";

/**
 * Every encoding in which known secrets are searched for, with the secret's name: plain, in JSON, in JSON nested in JSON, in
 * URLs, in base64 at any offset of a longer text (as in basic authorization), and in hex; of several lines, also each alone.
 */
export function secretForms(secrets: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  // Longest first: a longer secret may contain a shorter one.
  for (const [value, name] of [...secrets].sort(([a], [b]) => b.length - a.length)) {
    for (const form of [...formsOf(value), ...linesOf(value)]) if (!forms.has(form)) forms.set(form, name);
  }
  return forms;
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString("hex");
  const inUrl = encodeURIComponent(value.toWellFormed());
  const lower = inUrl.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  const inJson = escaped(value);
  // Tool arguments are JSON in JSON, and providers quote them in errors.
  const forms = [value, inJson, escaped(inJson), inUrl, lower, hex, hex.toUpperCase()];
  return [...forms, ...[0, 1, 2].flatMap((before) => base64Of(bytes, before))];
}

/** Shorter lines, and lines of several words, are found only with the rest of their secret. */
const SHORTEST_LINE = 16;
/** The lines of a secret such as a PEM file, for where each has its number before it, or only some are shown. */
function linesOf(value: string): readonly string[] {
  if (!value.includes("\n")) return [];
  return value.split(/\r?\n/).filter((line) => line.length >= SHORTEST_LINE && !/\s/.test(line));
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The base64 characters that depend on `bytes` alone if the number of bytes before them is `before` modulo three. */
function base64Of(bytes: Buffer, before: number): readonly string[] {
  const first = Math.ceil((8 * before) / 6);
  const end = Math.floor((8 * (before + bytes.length)) / 6);
  const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
  return [shifted.toString("base64").slice(first, end), shifted.toString("base64url").slice(first, end)];
}

/** Masks the secrets that any run of a session knows in what the store would keep unfiltered; `known` may grow. */
export function maskOutgoing(known: ReadonlyMap<string, string>) {
  const filter = (): SecretFilter => createSecretFilter(secretForms(known));
  return {
    signal: (signal: SignalMessage): SignalMessage => {
      const secrets = filter();
      return { ...signal, payload: secrets.json(signal.payload), by: secrets.text(signal.by) };
    },
    text: (text: string): string => filter().text(text),
  };
}

/**
 * The beginning of a text, without the word that would be cut: known secrets are masked later, and half of one would not be found.
 * Words end at whatever is no visible ASCII character.
 */
export function wholeWords(text: string, longest: number): string {
  if (text.length <= longest) return text;
  let end = longest;
  while (end > 0 && /[!-~]/.test(text.charAt(end))) end -= 1;
  const isHalfPair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return text.slice(0, isHalfPair ? end - 1 : end);
}
