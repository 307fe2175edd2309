import { type Json, redactJson, redactText } from "@sluice/core";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import type { Environment } from "./environment.ts";

/** Takes secrets out of what people see or keep. */
export interface Cleaner {
  text(text: string): string;
  json(value: Json): Json;
}

/** What looks like a secret: what a run's own filter has seen has lost those that are known. */
export const LOOKS: Cleaner = { text: redactText, json: redactJson };

/** Those that the environment tells as well: for what passed no run's filter, such as errors, notices and inputs. */
export function secretMask(env: Environment): Cleaner {
  const known = environmentSecrets(env);
  return { text: (text) => redactText(known.text(text)), json: (value) => redactJson(known.json(value)) };
}
