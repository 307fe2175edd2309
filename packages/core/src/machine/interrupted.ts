// What an execution reads of the one before it, which a person interrupted.
import type { Json } from "../base/json.ts";
import type { Cancelled } from "../definition/result.ts";

/** The end of a longer partial output is kept, since that is where the work continues. In characters. */
const LONGEST_PARTIAL = 8_000;

/** `ctx.feedback` of the visit after an interruption. */
export function interruptedFeedback(
  executionId: string,
  { result, by, reason }: { readonly result: Cancelled; readonly by: string; readonly reason: string },
): string {
  const why = reason === "" ? "without giving a reason" : `with this reason: ${reason}`;
  const who = by === "" ? "A person" : by;
  const happened = `${who} interrupted the previous execution of this state, ${executionId}, ${why}. What it changed may still be there.`;
  if (result.partial === undefined) return `${happened} It left no output.`;
  return `${happened} Its output until then:\n${partialText(result.partial)}`;
}

function partialText(partial: Json): string {
  const text = typeof partial === "string" ? partial : JSON.stringify(partial, null, 2);
  if (text.length <= LONGEST_PARTIAL) return text;
  return `… ${text.length - LONGEST_PARTIAL} characters omitted …\n${text.slice(-LONGEST_PARTIAL).toWellFormed()}`;
}
