import { field, isJsonObject, type Json, type JsonObject, parseStoredJson, textField } from "../../base/json.ts";
import type { ApprovedBy, EarlierVerdict } from "../../gate/authorize-call.ts";
import type { DenialCause } from "../../gate/denial.ts";
import type { FileEdit, Subject } from "../../gate/subjects.ts";
import { decodeValue } from "../../journal/record.ts";
import type { RecordedOutcome } from "../../journal/seam.ts";

// Types, not interfaces: these are recorded, and only types count as JSON to the compiler.

export type CallVerdict =
  | { readonly kind: "approved"; readonly by: ApprovedBy }
  /** A person has to grant it; `body` is the request's body, the same in every process. */
  | { readonly kind: "ask"; readonly body: JsonObject }
  | { readonly kind: "refused"; readonly output: Json; readonly cause?: DenialCause; readonly stuck?: true };
/** The verdict on one call. Recorded before the call runs, and read on resume. */
export type RecordedVerdict = {
  readonly id: string;
  readonly tool: string;
  /** Of the arguments. Records of earlier versions have none. */
  readonly argsDigest?: string;
  readonly verdict: CallVerdict;
  /** What the call may touch, also after a restart. Replay evaluates the gate on these subjects. */
  readonly subjects: readonly Subject[];
  /** What the call was counted to edit, in stages that limit edits. */
  readonly edits?: readonly FileEdit[];
  /** The tool's intent, for recovery. */
  readonly intent?: Json;
};

/** The verdict of an earlier process, for the gate to decide again; undefined for a refusal, which is final, and for a grant. */
export function earlierVerdict({ verdict, argsDigest, subjects, edits }: RecordedVerdict): EarlierVerdict | undefined {
  if (verdict.kind === "ask") return { kind: "prompt", body: verdict.body, subjects, edits };
  if (verdict.kind !== "approved" || verdict.by === "grant") return undefined;
  return { kind: "allow", by: verdict.by, argsDigest, subjects, edits };
}

/** The reason of a refusal by a hard limit or a deadline, which depends on files and time that a replay does not have. */
export function worldLimitOf({ verdict }: RecordedVerdict): string | undefined {
  if (verdict.kind !== "refused" || verdict.cause !== "limit") return undefined;
  return textField(verdict.output, "reason") ?? "";
}

/** Whether the call was refused because no one was available to grant it. */
export function isUndecided({ verdict }: RecordedVerdict): boolean {
  return verdict.kind === "refused" && verdict.cause === "no_interactor";
}

/** Replay makes verdicts again, unless a cancel interrupted them. */
export function decidesVerdict(recorded: RecordedOutcome): boolean {
  return verdictsIn(recorded).every(
    ({ verdict }) => verdict.kind !== "refused" || field(verdict.output, "code") !== "call_not_run",
  );
}

export function verdictsIn({ value }: RecordedOutcome): readonly RecordedVerdict[] {
  return decodeValue(value, isVerdicts, "verdicts");
}

/** What a step `verdicts` or `approvals` recorded; undefined for a value that neither records. */
export function readVerdicts(value: string): readonly RecordedVerdict[] | undefined {
  const read = parseStoredJson(value);
  return read.ok && isVerdicts(read.value) ? read.value : undefined;
}

function isVerdicts(value: Json): value is readonly RecordedVerdict[] {
  return Array.isArray(value) && value.every(isVerdict);
}

function isVerdict(value: Json): value is RecordedVerdict {
  const [id, tool, verdict] = [field(value, "id"), field(value, "tool"), field(value, "verdict")];
  if (typeof id !== "string" || typeof tool !== "string" || !Array.isArray(field(value, "subjects"))) return false;
  switch (field(verdict, "kind")) {
    case "approved":
      return typeof field(verdict, "by") === "string";
    case "ask":
      return isJsonObject(field(verdict, "body"));
    default:
      return field(verdict, "kind") === "refused" && field(verdict, "output") !== undefined;
  }
}
