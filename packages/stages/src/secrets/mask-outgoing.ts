import { createSecretFilter, type SecretFilter, type SignalMessage } from "@sluice/core";
import { secretForms } from "./encodings.ts";

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
