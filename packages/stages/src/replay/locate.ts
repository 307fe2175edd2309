import { field, type Json, parseJson, type RunJournal } from "@sluice/core";
import type { StepRef } from "@sluice/core/host";
import { parseStepId, type RecordDifference } from "@sluice/core/runtime";
import { type AgentStepRef, parseAgentStep } from "../agent/agent-steps.ts";

/** The location of a record in a run, from its step id. */
export interface RecordLocation {
  readonly executionId?: string;
  readonly attempt?: number;
  readonly turn?: number;
  /** `t<turn>.c<index>` */
  readonly callId?: string;
}

export function locationOf(difference: RecordDifference, journals: readonly RunJournal[]): RecordLocation {
  const step = parseAgentStep(difference.stepId);
  if (step === undefined) return {};
  const { executionId, attempt } = step;
  if (!("turn" in step)) return { executionId, attempt };
  const callId = callOf(difference, step.turn, journals);
  return { executionId, attempt, turn: step.turn, ...(callId === undefined ? {} : { callId }) };
}

function callOf(difference: RecordDifference, turn: number, journals: readonly RunJournal[]): string | undefined {
  const { runId, seq, path, recorded, now } = difference;
  const value = jsonOf(journals.find((journal) => journal.runId === runId)?.records[seq]?.value);
  const [, completion] = /^\$\.completions\[(\d+)\]/.exec(path) ?? [];
  const checked = completion === undefined ? undefined : field(value, "completions");
  if (Array.isArray(checked)) {
    const index = field(checked[Number(completion)], "index");
    return typeof index === "number" ? `t${turn}.c${index}` : undefined;
  }
  const [, at] = /^\$\[(\d+)\]/.exec(path) ?? [];
  const judged: Json | undefined = Array.isArray(value) && at !== undefined ? value[Number(at)] : undefined;
  const ids = [field(judged, "id"), field(value, "callId"), inEvent(recorded), inEvent(now)];
  return ids.find((id) => typeof id === "string");
}

function inEvent(event: Json | undefined): Json | undefined {
  return field(field(event, "data"), "callId");
}

function jsonOf(text: string | undefined): Json | undefined {
  const read = parseJson(text ?? "");
  return read.ok ? read.value : undefined;
}

/** The usual cause of a difference, as the end of the sentence "This usually means: …". */
export function usualCauseOf({ stepId, part, path, event, recorded, now }: RecordDifference): string {
  if (part === "fault") return "code now throws that did not throw when the run was recorded";
  if (part === "input") return "the fan-out now gives this sibling a different input, context or output";
  if (part === "end") return "the run now ends differently; check what its last route returns";
  if (part === "step") {
    if (now === undefined)
      return "the run now ends where the recorded run continued: a route, an assert or a cap changed";
    if (recorded === undefined)
      return "the run now continues where the recorded run ended: a route or an assert changed";
    return "the run now takes a different path, for which the record has no results; a replay calls nothing";
  }
  return (
    causeAtStep(parseAgentStep(stepId) ?? parseStepId(stepId), path, event) ??
    "the pipeline, a hook or Sluice itself has changed since the run was recorded"
  );
}

function causeAtStep(step: AgentStepRef | StepRef, path: string, event: string | undefined): string | undefined {
  switch (step.kind) {
    case "enter":
      if (path.startsWith("$.init.system"))
        return "the stage's prompt, its allowedTools, its completionTool, its events or its turnCap changed, so the model would have received a different request";
      if (path.startsWith("$.init")) return "the stage now gets a different task, input or feedback";
      if (event === "stage.setup")
        return "the stage has different tools: its allowedTools or the available tools changed";
      return "the stage is entered differently: a hook was added or removed, or the data for its prompt changed";
    case "calls":
      return step.part === "verdicts" || step.part === "approvals"
        ? "the gate decides differently: the stage's allowedTools, a guard hook or the tool's schema changed"
        : undefined;
    case "model":
    case "completion":
    case "output":
      return "the stage's schema validates the recorded output differently";
    case "accept":
      return "the machine decides about the event differently: its transitions, their conditions or the context changed";
    case "leave":
      return path.startsWith("$.next") || event?.startsWith("route.") === true
        ? "the route decides differently"
        : "the stage's assert decides differently";
    case "fanOut":
      return "the fan-out has different siblings";
    case "failedFanOut":
      return "the route after the failed fan-out decides differently";
    default:
      return undefined;
  }
}
