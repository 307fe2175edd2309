import type { JsonObject } from "../../base/json.ts";
import type { ChildRun, RunChildrenOptions, SiblingEnd } from "../../journal/seam.ts";
import type { ConcurrencySlots } from "../limits/concurrency-slot.ts";
import type { Walk } from "./one-run.ts";

/** Runs children in one step. Each reads what its parent has now. `slots` are those of a list with a limit of its own. */
export async function runChildren(
  { pipeline, steps, state }: Walk,
  stepId: string,
  children: readonly ChildRun[],
  options: RunChildrenOptions,
  slots?: ConcurrencySlots,
): Promise<Readonly<Record<string, SiblingEnd>>> {
  const { running } = pipeline;
  const { run, context, outputs } = state;
  const at = `${steps.runId}/${stepId}`;
  running.set(at, (child, input) =>
    pipeline.runChild({ steps: child, input, parent: { run, context, outputs }, slots }),
  );
  try {
    return await steps.runChildren(stepId, children, options);
  } finally {
    running.delete(at);
  }
}

/** A key may be called as a member of every object is. */
export function endOf(ends: Readonly<Record<string, SiblingEnd>>, key: string): SiblingEnd | undefined {
  return Object.hasOwn(ends, key) ? ends[key] : undefined;
}

/**
 * Data of the join event. Keys are values, since redaction looks at keys and a state may be called `cookie`. The heads bind an
 * export, which leaves values out, to the children's journals.
 */
export function outcomesOf(keys: readonly string[], ends: Readonly<Record<string, SiblingEnd>>): JsonObject[] {
  return keys.flatMap((name) => {
    const end = endOf(ends, name);
    return end === undefined ? [] : [{ name, status: end.status, head: end.head }];
  });
}
