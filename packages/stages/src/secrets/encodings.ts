import { createSecretFilter, type SecretFilter, type SignalMessage } from "@sluice/core";

/**
 * Every way in which known secrets are looked for, with the name of each: as they are, as they stand in JSON, in a text in JSON
 * that is JSON itself, and in URLs, in base64 at any place of a longer text, and in hex. A basic authorization is base64; a log of bytes is hex.
 */
export function secretForms(secrets: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  // A longer secret may hold a shorter one, and has its name where both are written the same.
  for (const [value, name] of [...secrets].sort(([a], [b]) => b.length - a.length)) {
    for (const form of formsOf(value)) if (!forms.has(form)) forms.set(form, name);
  }
  return forms;
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString("hex");
  const inUrl = encodeURIComponent(value.toWellFormed());
  const lower = inUrl.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  const inJson = escaped(value);
  // Arguments of calls are JSON in JSON, and errors of providers quote them.
  const written = [value, inJson, escaped(inJson), inUrl, lower, hex, hex.toUpperCase()];
  return [...written, ...[0, 1, 2].flatMap((before) => base64Of(bytes, before))];
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** What is the same in base64 whatever stands around the bytes, when so many bytes modulo three stand before them. */
function base64Of(bytes: Buffer, before: number): readonly string[] {
  const first = Math.ceil((8 * before) / 6);
  const end = Math.floor((8 * (before + bytes.length)) / 6);
  const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
  return [shifted.toString("base64").slice(first, end), shifted.toString("base64url").slice(first, end)];
}

/** Words to runs and about them: a store keeps them as they come, before the filter of the run they are for. */
export interface SaidSafely {
  signal(signal: SignalMessage): SignalMessage;
  text(text: string): string;
}

/** Takes out what any run of a session knows to be secret; `known` may grow. */
export function saidSafely(known: ReadonlyMap<string, string>): SaidSafely {
  const now = (): SecretFilter => createSecretFilter(secretForms(known));
  return {
    signal: (signal) => {
      const secrets = now();
      return { ...signal, payload: secrets.json(signal.payload), by: secrets.text(signal.by) };
    },
    text: (text) => now().text(text),
  };
}
