// What the machine decides in a run: recorded by its caller, without known secrets, and with its events.
import type { JsonObject } from "../../base/json.ts";
import type { EventType } from "../../journal/events.ts";
import { maskSecrets, redactText, type SecretFilter } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import { type ResolvedSibling, recordedChildren } from "../../machine/resolve-choice.ts";
import { decide, follow } from "../../machine/transition.ts";
import type { MachineInput } from "../../machine/transition-types.ts";
import type { AttemptJournal } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import { cancelReason, raceAbort } from "../limits/limits.ts";
import { ENTERED, left } from "./phases.ts";

/** What the machine decides, without known secrets. A cancelled run does not wait for the pipeline's code. */
export async function decideInRun(
  { spec, view, steps: { signal }, deps }: Pick<Execution, "spec" | "view" | "steps" | "deps">,
  input: MachineInput,
): Promise<NextDecision> {
  const deciding = signal.aborted ? undefined : decide(spec, view, input);
  const decided = deciding instanceof Promise ? (await raceAbort(signal, deciding))?.value : deciding;
  // What a cancel overtook does not count.
  const reason = cancelReason(signal);
  if (decided !== undefined && reason === undefined) return masked(decided, deps.secrets);
  return { by: "default", choice: { kind: "cancel", reason: reason ?? "cancelled" } };
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
  noteNext(execution, journal, call, { input, next });
  return next;
}

/** The phase Next of an execution that leaves by an accepted event. */
export function followRoute(
  execution: DecidingExecution,
  journal: AttemptJournal,
  call: StepCall,
  decided: DecidedNext,
): NextDecision {
  call.event(journal.event("stage.next", ENTERED));
  noteNext(execution, journal, call, decided);
  return decided.next;
}

type DecidingExecution = Pick<Execution, "spec" | "stateId" | "view">;
/** A decision, and what it is about. */
interface DecidedNext {
  readonly input: MachineInput;
  readonly next: NextDecision;
}

/** A move that waits for a person has its events when they have answered. */
function noteNext(execution: DecidingExecution, journal: AttemptJournal, call: StepCall, decided: DecidedNext): void {
  const { next } = decided;
  if (next.approval === undefined) noteRoute(execution, journal, call, decided);
  call.event(journal.event("stage.next", left("choice", next.choice.kind)));
}

/** The events of a decision that is final. The context changes as the machine says, which merges nothing at a cap. */
export function noteRoute(
  { spec, stateId, view }: DecidingExecution,
  journal: AttemptJournal,
  call: StepCall,
  { input, next }: DecidedNext,
): void {
  const note = (type: EventType, data: JsonObject): void => call.event(journal.event(type, data));
  const { choice, context: _merged, ...why } = next;
  if (next.rejected !== undefined) note("route.rejected", { from: stateId, reason: next.rejected });
  note("route.decided", { from: stateId, choice: choice.kind, ...targetOf(next), why });
  const { context: patch } = follow(spec, view, input, next).patch;
  if (patch !== undefined) note("context.changed", { patch });
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
      return { to: choice.state, ...(choice.prompt === undefined ? {} : { prompt: choice.prompt }) };
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
