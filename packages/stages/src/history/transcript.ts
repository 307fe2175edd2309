import {
  field,
  isJson,
  type JournalRecord,
  type Json,
  parseJson,
  type RecordedVerdict,
  readVerdicts,
  redactJson,
  redactText,
} from "@sluice/core";
import { type AgentStepRef, parseAgentStep } from "../agent/step-names.ts";
import { callId, invalidCompletion } from "../agent/transcript.ts";

/** One thing of an agent state's transcript as its run's records hold it, in the order it was recorded. */
export type TranscriptEntry = {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  /** Counted from 1, anew in each attempt. */
  readonly turn: number;
} & TranscriptPart;

type TranscriptPart =
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  /** `input` is undefined where the arguments could not be read. A call that the provider ran itself is `t<turn>.p<index>`. */
  | { readonly kind: "call"; readonly callId: string; readonly tool: string; readonly input: Json | undefined }
  /** What the model read of a call; of an accepted completion, what left the stage. */
  | { readonly kind: "result"; readonly callId: string; readonly ok: boolean; readonly output: Json }
  /** What a person said to the stage while it was at work. */
  | { readonly kind: "message"; readonly by: string; readonly text: string };

/**
 * The transcripts' entries in records of one run, in order. Each record has its own: any slice of a journal can be read, also
 * while the run goes on. A call stands before its result, and they have the same `callId`, which is unique in its attempt. What
 * looks like a secret is replaced, as in events; what cannot be read is left out. Never throws.
 */
export function transcriptEntries(runId: string, records: readonly JournalRecord[]): readonly TranscriptEntry[] {
  return records.flatMap((record) => {
    const step = record.phase === "done" ? parseAgentStep(record.stepId) : undefined;
    if (step === undefined || !("turn" in step)) return [];
    const { executionId, attempt, turn } = step;
    return partsOf(record, step).map((part) => ({ runId, executionId, attempt, turn, ...redacted(part) }));
  });
}

function partsOf(record: JournalRecord, step: AgentStepRef): readonly TranscriptPart[] {
  const read = parseJson(record.value);
  if (!read.ok) return [];
  const { value } = read;
  switch (step.kind) {
    case "model":
      return partsOfTurn(value, step.turn);
    case "completion":
      return checksOf(value, step.turn, new Map());
    case "calls":
      return step.part === "verdicts" || step.part === "approvals"
        ? (readVerdicts(record.value) ?? []).flatMap(refusalOf)
        : resultsOf(record.events, value);
    default:
      return [];
  }
}

/** What a model's step recorded: texts and calls, and how its completions read where there were no other calls. */
function partsOfTurn(value: Json, turn: number): readonly TranscriptPart[] {
  const reply = field(value, "reply");
  const calls = itemsOf(field(reply, "calls"));
  // Whatever came of the call: those were read before it.
  const parts = itemsOf(field(value, "messages")).flatMap(messageIn);
  const inputs = new Map<number, Json>();
  /** Calls of the provider's own, by its ids. */
  const provided = new Map<string, string>();
  let next = 0;
  for (const part of itemsOf(field(reply, "content"))) {
    const type = field(part, "type");
    if (type === "text" || type === "reasoning") parts.push(...saidIn(part, type));
    else if (type === "tool-result") parts.push(...providedResult(part, provided));
    else if (type === "tool-call" && field(part, "providerExecuted") === true) {
      const id = `t${turn}.p${provided.size}`;
      provided.set(textOf(part, "toolCallId"), id);
      parts.push({ kind: "call", callId: id, tool: textOf(part, "toolName"), input: readable(field(part, "input")) });
    } else if (type === "tool-call") {
      // One part for each call, in the same order, whatever ids a provider gave them.
      const call = calls[next];
      next += 1;
      const index = field(call, "index");
      if (typeof index !== "number") continue;
      const input = inputOf(call, part);
      if (input !== undefined) inputs.set(index, input);
      parts.push({ kind: "call", callId: callId(turn, index), tool: textOf(call, "tool"), input });
    }
  }
  return [...parts, ...checksOf(field(value, "completions"), turn, inputs)];
}

function messageIn(message: Json): TranscriptPart[] {
  const text = textOf(message, "text");
  return text === "" ? [] : [{ kind: "message", by: textOf(message, "by"), text }];
}

function saidIn(part: Json, kind: "text" | "reasoning"): readonly TranscriptPart[] {
  const text = textOf(part, "text");
  return text.trim() === "" ? [] : [{ kind, text }];
}

/** Arguments stand with the call only where the provider's format does not take them as they are. */
function inputOf(call: Json | undefined, part: Json): Json | undefined {
  if (field(call, "inputError") !== undefined) return undefined;
  return readable(field(call, "input") ?? field(part, "input"));
}

function providedResult(part: Json, provided: ReadonlyMap<string, string>): readonly TranscriptPart[] {
  const id = provided.get(textOf(part, "toolCallId"));
  const output = field(part, "output");
  const value = readable(field(output, "value"));
  if (id === undefined || value === undefined) return [];
  return [{ kind: "result", callId: id, ok: field(output, "type") !== "error-json", output: value }];
}

/** How completion calls read. One that was accepted as it stands has its output in its arguments. */
function checksOf(value: Json | undefined, turn: number, inputs: ReadonlyMap<number, Json>): readonly TranscriptPart[] {
  return itemsOf(value).flatMap((check): readonly TranscriptPart[] => {
    const index = field(check, "index");
    if (typeof index !== "number") return [];
    const ok = field(check, "ok") === true;
    const output = ok
      ? readable(field(check, "output") ?? inputs.get(index))
      : readable(invalidCompletion(itemsOf(field(check, "issues"))));
    return output === undefined ? [] : [{ kind: "result", callId: callId(turn, index), ok, output }];
  });
}

/** A call that was refused; what came of the others stands in the record of the call itself. */
function refusalOf({ id, verdict }: RecordedVerdict): readonly TranscriptPart[] {
  const output = verdict.kind === "refused" ? readable(verdict.output) : undefined;
  return output === undefined ? [] : [{ kind: "result", callId: id, ok: false, output }];
}

/** What calls came to. The record's events say which they were, in the same order; a question that still waits has none. */
function resultsOf(events: string, value: Json): readonly TranscriptPart[] {
  const read = parseJson(events);
  const finished = itemsOf(read.ok ? read.value : undefined).filter(
    (event) => field(event, "type") === "call.finished",
  );
  const ran = Array.isArray(value) ? value : [field(value, "result") ?? value];
  return finished.flatMap((event, at): readonly TranscriptPart[] => {
    const output = readable(field(ran[at], "output"));
    if (output === undefined) return [];
    const id = textOf(field(event, "data"), "callId");
    return [{ kind: "result", callId: id, ok: field(ran[at], "ok") === true, output }];
  });
}

function redacted(part: TranscriptPart): TranscriptPart {
  switch (part.kind) {
    case "text":
    case "reasoning":
      return { ...part, text: redactText(part.text) };
    case "call": {
      const { callId, tool, input } = part;
      const shown = input === undefined ? undefined : redactJson(input);
      return { kind: part.kind, callId: redactText(callId), tool: redactText(tool), input: shown };
    }
    case "result":
      return { ...part, callId: redactText(part.callId), output: redactJson(part.output) };
    case "message":
      return { ...part, by: redactText(part.by), text: redactText(part.text) };
  }
}

/** A value that no reader of it can stumble over: nested no deeper than a journal of ours holds. */
function readable(value: Json | undefined): Json | undefined {
  return value !== undefined && isJson(value) ? value : undefined;
}

function itemsOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: Json | undefined, key: string): string {
  const text = field(value, key);
  return typeof text === "string" ? text : "";
}
