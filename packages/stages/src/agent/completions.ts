import { type AgentSpec, type CompiledSchema, type Issue, isJson, type Json, messageOf } from "@sluice/core";
import type { CompletionCheck, Reply } from "./kept-reply.ts";

/** Reads the completion calls of a reply up to the first that fits. Inside a step: a schema may be user code. */
export async function checkCompletions(
  reply: Pick<Reply, "calls">,
  { completionTool, completionSchema }: Pick<AgentSpec, "completionTool" | "completionSchema">,
): Promise<readonly CompletionCheck[]> {
  const checks: CompletionCheck[] = [];
  for (const call of reply.calls) {
    if (call.tool !== completionTool) continue;
    if (call.input === undefined) {
      const message = call.inputError?.message ?? "the arguments could not be read";
      checks.push({ index: call.index, ok: false, issues: [{ path: "$", message }] });
      continue;
    }
    const verdict = await checkOutput(completionSchema, call.input);
    checks.push({ index: call.index, ...verdict });
    if (verdict.ok) break;
  }
  return checks;
}

type OutputCheck =
  | { readonly ok: true; readonly output: Json }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** A schema may be user code that throws, and what it makes of a value must still be JSON to be kept. */
async function checkOutput(schema: CompiledSchema<unknown>, input: Json): Promise<OutputCheck> {
  try {
    const verdict = await schema.check(input);
    if (!verdict.ok) return verdict;
    if (isJson(verdict.value)) return { ok: true, output: verdict.value };
    return {
      ok: false,
      issues: [{ path: "$", message: "the schema turned the payload into something that is not JSON" }],
    };
  } catch (thrown) {
    return { ok: false, issues: [{ path: "$", message: `the schema could not check this: ${messageOf(thrown)}` }] };
  }
}
