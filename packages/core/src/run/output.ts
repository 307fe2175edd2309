import { messageOf } from "../base/errors.ts";
import { isJson, type Json } from "../base/json.ts";
import type { CompiledSchema, Issue } from "../definition/spec.ts";
import type { ActOutcome } from "./executor.ts";
import type { AttemptJournal } from "./scoped-steps.ts";

type Checked = { readonly ok: true; readonly output: Json } | { readonly ok: false; readonly why: string };

/**
 * Holds what an executor says it made against the state's own output schema. A step, since a schema may be user code: what it
 * said once is what later readers get.
 */
export async function checkedOutput(
  journal: AttemptJournal,
  schema: CompiledSchema<unknown> | undefined,
  outcome: ActOutcome,
): Promise<ActOutcome> {
  if (schema === undefined || outcome.status !== "completed") return outcome;
  const { turns, usage, output } = outcome;
  const checked = await journal.steps.run("output", () => check(schema, output));
  if (checked.ok) return { status: "completed", output: checked.output, turns, usage };
  return { status: "failed", code: "schema", message: `the output does not fit: ${checked.why}`, turns, usage };
}

async function check(schema: CompiledSchema<unknown>, output: Json): Promise<Checked> {
  try {
    const verdict = await schema.check(output);
    if (!verdict.ok) return { ok: false, why: textOf(verdict.issues) };
    if (isJson(verdict.value)) return { ok: true, output: verdict.value };
    return { ok: false, why: "its schema turned it into something that is not JSON" };
  } catch (thrown) {
    return { ok: false, why: `its schema could not check it: ${messageOf(thrown)}` };
  }
}

function textOf(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => `${path} ${message}`).join("; ");
}
