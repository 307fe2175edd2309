// Secrets that a pipeline gives to some of its commands only.

import { type PipelineSpec, SluiceError } from "@sluice/core";
import { SHORTEST_SECRET } from "./detect.ts";

/** The states that declare secrets, by the names of the variables. */
type DeclaredSecrets = ReadonlyMap<string, string>;

/**
 * Throws Session `secret_missing`; `secret_too_short` for values that cannot be masked; and `secret_shared` if processes that outlive
 * a run, which have got the variables in `given`, have one of them.
 */
export function refuseUnusableSecrets(
  { id }: PipelineSpec,
  declared: DeclaredSecrets,
  env: Readonly<Record<string, string | undefined>>,
  given: ReadonlySet<string>,
): void {
  const lengthOf = (name: string): number => env[name]?.trim().length ?? 0;
  const missing = [...declared].filter(([name]) => lengthOf(name) === 0);
  if (missing.length > 0) {
    const first = missing[0]?.[0] ?? "";
    const message = `pipeline ${id} cannot run: ${list(missing)}. Set it in the environment of the process that runs the pipeline: export ${first}=…`;
    throw new SluiceError("Session", "secret_missing", message, { detail: { secrets: missing.map(([name]) => name) } });
  }
  const short = [...declared].find(([name]) => lengthOf(name) < SHORTEST_SECRET);
  if (short !== undefined) {
    const message = `pipeline ${id} cannot run: the secret ${short[0]} of state ${short[1]} has ${lengthOf(short[0])} characters. Shorter values than ${SHORTEST_SECRET} characters occur in ordinary text and cannot be masked`;
    throw new SluiceError("Session", "secret_too_short", message, { detail: { secrets: [short[0]] } });
  }
  const shared = [...declared.keys()].find((name) => given.has(name));
  if (shared === undefined) return;
  const message = `the MCP servers of this session were started with the variable ${shared}, which this pipeline declares as a secret of a script; use a new session, or name it in secrets of the session`;
  throw new SluiceError("Session", "secret_shared", message, { detail: { secrets: [shared] } });
}

function list(missing: readonly (readonly [name: string, state: string])[]): string {
  const each = missing.map(([name, state]) => `state ${state} needs the secret ${name}`);
  return `${each.join(", ")}, which ${missing.length === 1 ? "is" : "are"} not set`;
}
