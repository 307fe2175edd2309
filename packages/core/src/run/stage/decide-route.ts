// What the machine decides in a run: recorded by its caller, without known secrets, and with its events.
import type { JsonObject } from "../../base/json.ts";
import type { EventType } from "../../journal/events.ts";
import { maskSecrets, redactText, type SecretFilter } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import type { ResolvedSibling } from "../../machine/resolve-choice.ts";
import { decide, type MachineInput, recordedChildren } from "../../machine/transition.ts";
import type { AttemptJournal } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import { cancelReason, raceAbort } from "../limits/limits.ts";
import { ENTERED, left } from "./phases.ts";

/** What the machine decides, without known secrets. A cancelled run does not wait for the pipeline's code. */
export async function decideInRun(
  { spec, view, steps, deps }: Pick<Execution, "spec" | "view" | "steps" | "deps">,
  input: MachineInput,
): Promise<NextDecision> {
  const decided =
    cancelReason(steps.signal) === undefined ? await raceAbort(steps.signal, decide(spec, view, input)) : undefined;
  if (decided !== undefined) return masked(decided.value, deps.secrets);
  return { by: "default", choice: { kind: "cancel", reason: cancelReason(steps.signal) ?? "cancelled" } };
}

/** The phase Next: asks the machine what comes next. */
export async function decideRoute(
  execution: Pick<Execution, "spec" | "stateId" | "view" | "steps" | "deps">,
  journal: AttemptJournal,
  call: StepCall,
  input: MachineInput,
): Promise<NextDecision> {
  call.event(journal.event("stage.next", ENTERED));
  const next = await decideInRun(execution, input);
  noteNext(execution, journal, call, next);
  return next;
}

/** The phase Next of an execution that leaves by an accepted event. */
export function followRoute(
  execution: Pick<Execution, "stateId">,
  journal: AttemptJournal,
  call: StepCall,
  next: NextDecision,
): NextDecision {
  call.event(journal.event("stage.next", ENTERED));
  noteNext(execution, journal, call, next);
  return next;
}

/** A move that waits for a person has its events when they have answered. */
function noteNext(
  { stateId }: Pick<Execution, "stateId">,
  journal: AttemptJournal,
  call: StepCall,
  next: NextDecision,
): void {
  if (next.approval === undefined) noteRoute(stateId, journal, call, next);
  call.event(journal.event("stage.next", left("choice", next.choice.kind)));
}

/** The events of a decision that is final. */
export function noteRoute(stateId: string, journal: AttemptJournal, call: StepCall, next: NextDecision): void {
  const note = (type: EventType, data: JsonObject): void => call.event(journal.event(type, data));
  const { choice, context = contextIn(choice), ...why } = next;
  if (next.rejected !== undefined) note("route.rejected", { from: stateId, reason: next.rejected });
  note("route.decided", { from: stateId, choice: choice.kind, ...targetOf(next), why });
  if (context !== undefined) note("context.changed", { patch: context });
}

function contextIn(choice: NextDecision["choice"]): JsonObject | undefined {
  return choice.kind === "to" ? choice.context : undefined;
}

/**
 * Without known secrets. A list with a key that holds one, or that events would redact, is refused: masked keys could name two
 * children alike, and readers of events find a child's run by its key.
 */
function masked(next: NextDecision, secrets: SecretFilter): NextDecision {
  const clean = maskSecrets(next, secrets);
  const keys = keysOf(next);
  if (keysOf(clean).every((key, index) => key === keys[index] && redactText(key) === key)) return clean;
  const { choice: _choice, ...why } = clean;
  const rejected = "a key of the list holds a secret, or what looks like one; name the items by something else";
  return { ...why, rejected, choice: { kind: "fail", reason: rejected } };
}

function keysOf({ choice }: NextDecision): readonly string[] {
  return choice.kind === "fanOut" ? choice.siblings.flatMap(({ key }) => key ?? []) : [];
}

function targetOf({ choice }: NextDecision): JsonObject {
  switch (choice.kind) {
    case "to":
      return { to: choice.state };
    case "fanOut":
      return choice.list === undefined
        ? { to: choice.siblings.map(targetName), join: choice.join, ...recordedChildren(choice) }
        : { to: [choice.list], join: choice.join, items: choice.siblings.length };
    case "done":
    case "return":
      return {};
    case "fail":
    case "cancel":
    case "stay":
      return { reason: choice.reason };
  }
}

function targetName(sibling: ResolvedSibling): string {
  return sibling.kind === "invoke" ? sibling.pipeline : sibling.state;
}
