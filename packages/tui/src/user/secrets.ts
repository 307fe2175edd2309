import type { Json } from "@sluice/core";
import { redactJson, redactText } from "@sluice/core/runtime";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import type { Environment } from "./environment.ts";

/** Masks secrets in texts that are shown or stored. */
export interface Cleaner {
  text(text: string): string;
  json(value: Json): Json;
}

/** Masks texts that look like a secret; the filter of their run already masked the known ones. */
export const LOOKS: Cleaner = { text: redactText, json: redactJson };

/** Also masks secrets of the environment: for errors, notices and inputs, which pass no run's filter. */
export function secretMask(env: Environment): Cleaner {
  const known = environmentSecrets(env);
  return { text: (text) => redactText(known.text(text)), json: (value) => redactJson(known.json(value)) };
}
