import { field, isJson, type JournalRecord, type Json, parseJson } from "@sluice/core";
import { denialIn, type RecordedVerdict, readVerdicts, redactJson, redactText, textField } from "@sluice/core/runtime";
import { type AgentStepRef, parseAgentStep } from "../agent/agent-steps.ts";
import { invalidCompletion } from "../agent/completion/completion.ts";
import { callId } from "../agent/transcript.ts";

/** An entry of an agent state's transcript, reconstructed from the journal. */
export type TranscriptEntry = {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  /** From 1 in each attempt. */
  readonly turn: number;
} & TranscriptPart;

type TranscriptPart =
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  /** `input` is undefined if the arguments were invalid. The id of a provider-executed call is `t<turn>.p<index>`. */
  | { readonly kind: "call"; readonly callId: string; readonly tool: string; readonly input: Json | undefined }
  /** The tool result that the model received, or the output of an accepted completion. */
  | { readonly kind: "result"; readonly callId: string; readonly ok: boolean; readonly output: Json }
  /** A message that a user sent to the active stage. */
  | { readonly kind: "message"; readonly by: string; readonly text: string };

/**
 * The transcript entries in records of one run, in order. Any slice of a journal can be read, even while the run is active. A
 * call precedes its result, which has the same `callId`, unique in its attempt. Entries are redacted like events; unreadable
 * ones are omitted. Never throws.
 */
export function transcriptEntries(runId: string, records: readonly JournalRecord[]): readonly TranscriptEntry[] {
  return recordedEntries(runId, records).map((entry) => ({ ...entry, ...redacted(entry) }));
}

/** The same as they are recorded. To be compared with, never shown: two inputs may be redacted to the same text. */
export function recordedEntries(runId: string, records: readonly JournalRecord[]): readonly TranscriptEntry[] {
  return records.flatMap((record) => {
    const step = record.phase === "done" ? parseAgentStep(record.stepId) : undefined;
    if (step === undefined || !("turn" in step)) return [];
    const { executionId, attempt, turn } = step;
    return partsOf(record, step).map((part) => ({ runId, executionId, attempt, turn, ...part }));
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
    case "accept":
      return transitionIn(record.events, value);
    case "calls":
      return step.part === "verdicts" || step.part === "approvals"
        ? (readVerdicts(record.value) ?? []).flatMap((verdict) => refusalOf(verdict, step.state))
        : resultsOf(record.events, value);
    default:
      return [];
  }
}

/** The texts, calls and checked completions of a model step. */
function partsOfTurn(value: Json, turn: number): readonly TranscriptPart[] {
  const reply = field(value, "reply");
  const calls = itemsOf(field(reply, "calls"));
  // The model read these messages before it replied.
  const parts = itemsOf(field(value, "messages")).flatMap(messageIn);
  const inputs = new Map<number, Json>();
  /** Ids of provider-executed calls by the provider's ids. */
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

/** The call itself has arguments only if the content part could not hold them. */
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

/** The results of completion calls. An accepted call without an output has it in its arguments. */
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

/** What the machine decided about a transition, once that is final. */
function transitionIn(events: string, value: Json): readonly TranscriptPart[] {
  const read = parseJson(events);
  return itemsOf(read.ok ? read.value : undefined).flatMap((drafted): readonly TranscriptPart[] => {
    const [type, data] = [textOf(drafted, "type"), field(drafted, "data")];
    const id = textOf(data, "callId");
    if (id === "") return [];
    if (type === "transition.accepted") {
      const output = { event: textOf(data, "event"), data: field(field(value, "decision"), "context") ?? {} };
      return [{ kind: "result", callId: id, ok: true, output }];
    }
    if (type !== "transition.rejected") return [];
    const output = { code: "transition_rejected", reason: textOf(data, "reason"), rows: field(data, "rows") ?? [] };
    return [{ kind: "result", callId: id, ok: false, output }];
  });
}

/** The result of a denied call; executed calls have their own records. */
function refusalOf({ id, verdict }: RecordedVerdict, state: string): readonly TranscriptPart[] {
  const output = verdict.kind === "refused" ? readable(denialIn(state, verdict.output)) : undefined;
  return output === undefined ? [] : [{ kind: "result", callId: id, ok: false, output }];
}

/** The results of executed calls, in the order of the record's `call.finished` events. */
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

/** The value, or undefined if it is not JSON that a journal could hold. */
function readable(value: Json | undefined): Json | undefined {
  return value !== undefined && isJson(value) ? value : undefined;
}

function itemsOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: Json | undefined, key: string): string {
  return textField(value, key) ?? "";
}
