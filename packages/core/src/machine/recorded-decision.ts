import { field, isJsonObject, type Json, textField } from "../base/json.ts";
import type { NextDecision } from "./decide-next.ts";
import type { ResolvedChoice } from "./resolve-choice.ts";

const DECIDERS: ReadonlySet<unknown> = new Set<NextDecision["by"]>([
  "function",
  "table",
  "default",
  "event",
  "safe_next",
  "interrupt",
  "model",
  "fallback",
]);
const ENDS: ReadonlySet<unknown> = new Set<ResolvedChoice["kind"]>(["fail", "cancel", "stay"]);

/** Whether a recorded value is a decision, which `follow` turns into its effect and patch again. */
export function isDecision(value: Json | NextDecision): value is NextDecision {
  return DECIDERS.has(field(value, "by")) && isChoice(field(value, "choice"));
}

function isChoice(choice: Json | undefined): choice is ResolvedChoice {
  switch (field(choice, "kind")) {
    case "to":
      return hasText(choice, "state") && field(choice, "input") !== undefined;
    case "fanOut": {
      const siblings = field(choice, "siblings");
      return hasText(choice, "join") && Array.isArray(siblings) && siblings.every(isSibling);
    }
    case "return":
      return true;
    case "done":
      return field(choice, "output") !== undefined;
    default:
      return ENDS.has(field(choice, "kind")) && hasText(choice, "reason");
  }
}

function isSibling(sibling: Json): boolean {
  switch (field(sibling, "kind")) {
    case undefined:
      return hasText(sibling, "state");
    case "branch":
      return hasText(sibling, "key") && hasText(sibling, "state") && hasText(sibling, "terminal");
    case "invoke":
      return hasText(sibling, "key") && hasText(sibling, "pipeline") && isJsonObject(field(sibling, "input"));
    default:
      return false;
  }
}

function hasText(value: Json | undefined, key: string): boolean {
  return textField(value, key) !== undefined;
}

/** What the step before the first state records: the initial state's input as its schema returns it, or why it does not fit. */
export type RecordedStart =
  | { readonly ok: true; readonly choice: ResolvedChoice }
  | { readonly ok: false; readonly reason: string };

export function isRecordedStart(value: Json | RecordedStart): value is RecordedStart {
  return field(value, "ok") === true ? isChoice(field(value, "choice")) : hasText(value, "reason");
}

export function toRecordedStart({ choice, rejected }: NextDecision): RecordedStart {
  return rejected === undefined ? { ok: true, choice } : { ok: false, reason: rejected };
}

export function fromRecordedStart(start: RecordedStart): NextDecision {
  if (start.ok) return { by: "default", choice: start.choice };
  const { reason } = start;
  return { by: "default", rejected: reason, choice: { kind: "fail", reason } };
}
