// Secrets that a pipeline gives to some of its commands only.

import { type PipelineSpec, SluiceError } from "@sluice/core";
import { SHORTEST_SECRET } from "./detect.ts";

/** The states that declare secrets, by the names of the variables. */
type DeclaredSecrets = ReadonlyMap<string, string>;

/** Throws Session `secret_missing`, and `secret_too_short` for values that cannot be masked. */
export function refuseUnusableSecrets(
  { id }: PipelineSpec,
  declared: DeclaredSecrets,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const lengthOf = (name: string): number => env[name]?.trim().length ?? 0;
  const missing = [...declared].filter(([name]) => lengthOf(name) === 0);
  if (missing.length > 0) {
    const first = missing[0]?.[0] ?? "";
    const message = `pipeline ${id} cannot run: ${list(missing)}. Set it in the environment of the process that runs the pipeline: export ${first}=…`;
    throw new SluiceError("Session", "secret_missing", message, { detail: { secrets: missing.map(([name]) => name) } });
  }
  const short = [...declared].find(([name]) => lengthOf(name) < SHORTEST_SECRET);
  if (short === undefined) return;
  const message = `pipeline ${id} cannot run: the secret ${short[0]} of state ${short[1]} has ${lengthOf(short[0])} characters. Shorter values than ${SHORTEST_SECRET} characters occur in ordinary text and cannot be masked`;
  throw new SluiceError("Session", "secret_too_short", message, { detail: { secrets: [short[0]] } });
}

function list(missing: readonly (readonly [name: string, state: string])[]): string {
  const each = missing.map(([name, state]) => `state ${state} needs the secret ${name}`);
  return `${each.join(", ")}, which ${missing.length === 1 ? "is" : "are"} not set`;
}
