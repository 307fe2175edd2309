import { createSecretFilter, type SecretFilter, type SignalMessage } from "@sluice/core";
import { MODEL_PROVIDERS } from "./models/registry.ts";
import { secretForms } from "./secret-forms.ts";
import { sessionSecrets } from "./secrets.ts";

/**
 * What a process knows to be secret by its environment alone: keys of providers, variables that are called like keys, and those
 * named. For what people type and programs print outside of runs; a run's own session knows more.
 */
export function environmentSecrets(
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[] = [],
): SecretFilter {
  const keys = MODEL_PROVIDERS.flatMap(({ variables }) => variables.map(({ name }) => name)).filter((name) =>
    name.endsWith("KEY"),
  );
  return sessionSecrets(env, { named: [...named, ...keys], passed: [], values: [] }).filter;
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
