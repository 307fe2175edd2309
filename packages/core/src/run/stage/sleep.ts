// A sleep of an execution. In an orchestrated run, a message interrupts it: the orchestrator answers, and the sleep continues.
import type { JsonObject } from "../../base/json.ts";
import type { StepCall } from "../../journal/seam.ts";
import { stepNames } from "../../journal/step-id.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import { choiceText } from "../../machine/legal-events.ts";
import { MESSAGE } from "../../machine/transition.ts";
import type { MachineInput } from "../../machine/transition-types.ts";
import type { Attempt } from "../attempt.ts";
import type { DetourEnd } from "../execution.ts";
import { decideInRun } from "./decide-route.ts";
import { decidesRoute } from "./recorded-phases.ts";

/** Counts the messages that interrupted the sleeps of one attempt. */
export interface SleepCounts {
  messages: number;
}

/** Sleeps until a time, which no message moves. Returns early when the run is cancelled or continues elsewhere. */
export async function sleepThrough(
  attempt: Attempt,
  counts: SleepCounts,
  { name, until, data }: { readonly name: string; readonly until: number; readonly data: JsonObject },
): Promise<void> {
  const { execution, journal, slot } = attempt;
  let signal = execution.spec.orchestrator === undefined ? undefined : MESSAGE;
  let stepId = name;
  for (;;) {
    const by = await slot.withSlotReleased(() => journal.sleep(stepId, until, data, signal));
    if (by !== "signal") return;
    const end = await handleMessage(attempt, until, counts.messages);
    if (end.kind === "left") return;
    counts.messages += 1;
    stepId = `${name}/after-message/${counts.messages}`;
    // An orchestrator that failed did not take the message, which would interrupt this sleep again at once.
    if (end.by.status !== "completed") signal = undefined;
  }
}

/** Runs the orchestrator while the execution waits. `number` counts such detours of the attempt, from 0. */
async function handleMessage(attempt: Attempt, until: number, number: number): Promise<DetourEnd> {
  const { execution, journal, slot } = attempt;
  const input: MachineInput = { kind: "message", until };
  const decide = async (step: StepCall): Promise<NextDecision> => {
    const decision = await decideInRun(execution, input);
    const { choice } = decision;
    if (choice.kind !== "cancel")
      step.event(journal.event("interrupt.started", { interrupt: MESSAGE, files: [], to: choiceText(choice) }));
    return decision;
  };
  const decision = await journal.run(stepNames.interrupt(number), decide, { decides: decidesRoute });
  const end = await slot.withSlotReleased(() => execution.detours.take({ input, decision }));
  if (end.kind === "returned") journal.note("interrupt.returned", { interrupt: MESSAGE, by: end.by.executionId });
  return end;
}
