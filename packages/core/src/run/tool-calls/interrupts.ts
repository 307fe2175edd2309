// A call changed files that an interrupt names: its handler runs while the execution waits.
import { mayHoldPaths, readPathScope } from "../../definition/patterns/path-scope.ts";
import type { PipelineSpec } from "../../definition/spec.ts";
import { insideRoot } from "../../gate/hard-limits.ts";
import type { Subject, WatchedFiles } from "../../gate/subjects.ts";
import type { StepCall } from "../../journal/seam.ts";
import { stepNames } from "../../journal/step-id.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import { choiceText } from "../../machine/legal-events.ts";
import type { MachineInput } from "../../machine/transition-types.ts";
import type { Attempt } from "../attempt.ts";
import type { Interrupt, MatchedInterrupt } from "../execution.ts";
import type { HandledInterrupt } from "../executor.ts";
import { decideInRun } from "../stage/decide-route.ts";
import { decidesRoute } from "../stage/recorded-phases.ts";
import type { ToolCallContext } from "./tool-call.ts";

type CallResult = "ok" | "error" | "abandoned" | "outcome_unknown" | "recovered";

/** A record names no more changed files of one interrupt than these. */
const MOST_FILES = 20;

/** The interrupts of a pipeline, compiled once. */
export function interruptsOf({ interrupts }: PipelineSpec): readonly Interrupt[] {
  return interrupts.map(({ name, files }) => {
    const scope = readPathScope(files);
    // A pipeline with another pattern is refused when it is defined.
    return scope.ok
      ? { name, matches: scope.value, mayHold: mayHoldPaths(files) }
      : { name, matches: () => true, mayHold: () => true };
  });
}

/** The files of all interrupts. */
export function watchedFiles(interrupts: readonly Interrupt[]): WatchedFiles {
  return {
    matches: (path) => interrupts.some(({ matches }) => matches(path)),
    mayHold: (folder) => interrupts.some(({ mayHold }) => mayHold(folder)),
  };
}

/** The interrupts that an executed call starts, in declared order. Those that are being handled are not started again. */
export function matchedInterrupts(
  { attempt: { execution } }: ToolCallContext,
  changesOf: () => CallChanges,
): readonly MatchedInterrupt[] {
  const { interrupts, view, deps } = execution;
  if (interrupts.length === 0) return [];
  const changes = changesOf();
  const files = changes.changed ?? writtenPaths(changes, deps.workspace.root);
  const isUnknown = mayHaveChangedAny(changes);
  const handled = new Set(view.suspended.map(({ interrupt }) => interrupt));
  return interrupts.flatMap(({ name, matches }) => {
    if (handled.has(name)) return [];
    const matching = files.filter((file) => matches(file));
    if (matching.length === 0 && !isUnknown) return [];
    return [{ interrupt: name, files: matching.slice(0, MOST_FILES).map(deps.secrets.text) }];
  });
}

/** What is known of the files that a call changed. */
interface CallChanges {
  readonly subjects: readonly Subject[];
  readonly outcome: CallResult;
  /** As its tool reports them. */
  readonly changed: readonly string[] | undefined;
  /** It may have changed others, as its tool reports. */
  readonly isUnknown: boolean;
  /** Its sandbox forbids it. */
  readonly writesNothing: boolean;
}

/** What a call that does not report its changes may have changed: the paths that it was allowed to write. */
function writtenPaths({ subjects, outcome }: CallChanges, root: string): readonly string[] {
  if (outcome === "error") return [];
  return subjects.flatMap((subject) =>
    subject.kind === "path" && subject.access === "write" ? (insideRoot(root, subject.real) ?? []) : [],
  );
}

/** Whether it is unknown which files changed: then every interrupt starts, since each could be about one of them. */
function mayHaveChangedAny({ subjects, outcome, changed, isUnknown, writesNothing }: CallChanges): boolean {
  if (writesNothing) return false;
  if (isUnknown) return true;
  // Nothing reports what a call changed that did not end here. Only one of files alone changes no others.
  const hasNoReport = changed === undefined && (outcome === "abandoned" || outcome === "outcome_unknown");
  return hasNoReport && !(subjects.length > 0 && subjects.every(({ kind }) => kind === "path"));
}

/**
 * Runs the handler of an interrupt. Undefined if it did not return, or if a changed pipeline has no such interrupt. If a person
 * interrupted the execution before the handler began, the attempt has missed it. `number` counts those of the attempt, from 0.
 */
export async function handleInterrupt(
  { attempt }: { readonly attempt: Attempt },
  matched: MatchedInterrupt,
  number: number,
): Promise<HandledInterrupt | undefined> {
  const { interrupt, files } = matched;
  const { execution, journal, slot } = attempt;
  const { detours } = execution;
  if (!execution.interrupts.some(({ name }) => name === interrupt)) return undefined;
  const [path = ""] = files;
  const input: MachineInput = { kind: "interrupt", name: interrupt, path, files };
  const decide = async (step: StepCall): Promise<NextDecision> => {
    const decision = await decideInRun(execution, input);
    const { choice } = decision;
    // Only a cancel ends the run here, and no handler starts then.
    if (choice.kind !== "cancel" && detours.interrupted === undefined)
      step.event(journal.event("interrupt.started", { interrupt, files: [...files], to: choiceText(choice) }));
    return decision;
  };
  const decision = await journal.run(stepNames.interrupt(number), decide, { decides: decidesRoute });
  if (detours.interrupted !== undefined) {
    attempt.missed.push(matched);
    return undefined;
  }
  const end = await slot.withSlotReleased(() => detours.take({ input, decision }));
  if (end.kind === "left") return undefined;
  const { by } = end;
  journal.note("interrupt.returned", { interrupt, by: by.executionId });
  const output = by.status === "completed" ? { output: by.output } : {};
  return { interrupt, files, by: by.executionId, ...output };
}
