import {
  field,
  type Json,
  parseJson,
  parseStepId,
  type RecordDifference,
  type RunJournal,
  type StepRef,
} from "@sluice/core";
import { type AgentStepRef, parseAgentStep } from "../agent/step-names.ts";

/** Where in a run a record belongs, as its step's id says. */
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

/** What a difference at this place usually comes from, in one sentence. */
export function usualCauseOf({ stepId, part, path, event, recorded, now }: RecordDifference): string {
  if (part === "fault") return "code that had not thrown when the run was recorded throws now";
  if (part === "input") return "the route that forked hands this sibling another input, context or output";
  if (part === "end") return "the run comes to another end: look at what its last route returns";
  if (part === "step") {
    if (now === undefined)
      return "the run ends now where the recorded one went on: a route, an assert or a cap is other";
    if (recorded === undefined)
      return "the run goes on now where the recorded one had ended: a route or an assert is other";
    return "the run goes another way now, and the record holds no result for it: nothing is called in a replay";
  }
  return (
    meaningOfStep(parseAgentStep(stepId) ?? parseStepId(stepId), path, event) ??
    "the pipeline, a hook or Sluice itself is not what it was when the run was recorded"
  );
}

function meaningOfStep(step: AgentStepRef | StepRef, path: string, event: string | undefined): string | undefined {
  switch (step.kind) {
    case "enter":
      if (path.startsWith("$.init.system"))
        return "the stage's prompt, its allowedTools, its completionTool or its turnCap changed: the model would have been asked something else";
      if (path.startsWith("$.init")) return "the stage is given another task, input or feedback";
      if (event === "stage.setup")
        return "the stage has other tools: its allowedTools changed, or the tools that are there";
      return "the stage is entered otherwise: a hook was added or is gone, or what it is rendered from is other";
    case "calls":
      return step.part === "verdicts" || step.part === "approvals"
        ? "the gate decides otherwise: the stage's allowedTools, a guard hook or the tool's schema changed"
        : undefined;
    case "model":
    case "completion":
    case "output":
      return "the stage's schema takes another view of what was handed in";
    case "leave":
      return path.startsWith("$.next") || event?.startsWith("route.") === true
        ? "the route decides otherwise"
        : "the stage's assert decides otherwise";
    case "fanOut":
      return "the fan-out has other siblings";
    case "failedFanOut":
      return "the route after the failed fan-out decides otherwise";
    default:
      return undefined;
  }
}
