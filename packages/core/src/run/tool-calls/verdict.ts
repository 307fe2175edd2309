import { field, isJsonObject, type Json, type JsonObject, parseStoredJson } from "../../base/json.ts";
import type { DenialCause } from "../../gate/denial.ts";
import type { ApprovedBy } from "../../gate/grants.ts";
import type { Subject } from "../../gate/subjects.ts";
import { decodeValue } from "../../journal/record/append.ts";
import type { RecordedOutcome, StepCall } from "../../journal/seam.ts";

// Types, not interfaces: these are recorded, and only types count as JSON to the compiler.

export type CallVerdict =
  | { readonly kind: "approved"; readonly by: ApprovedBy }
  /** A person has to grant it; `body` is what they are asked, the same in every process. */
  | { readonly kind: "ask"; readonly body: JsonObject }
  | { readonly kind: "refused"; readonly output: Json; readonly cause?: DenialCause; readonly stuck?: true };
/** What was decided about one call; recorded before anything follows from it, and read back on resume. */
export type RecordedVerdict = {
  readonly id: string;
  readonly tool: string;
  readonly verdict: CallVerdict;
  /** What it was judged to touch: also after a restart it may open nothing else, and a replay judges by it again. */
  readonly subjects: readonly Subject[];
  /** What the tool prepared for recovery. */
  readonly intent?: Json;
};

const UNKNOWN: Pick<RecordedVerdict, "verdict" | "subjects"> = {
  verdict: { kind: "approved", by: "envelope" },
  subjects: [],
};

/** In a replay, what was decided about a call: nothing about the world where the record does not know it. Undefined otherwise. */
export function readRecordedVerdict({ recorded }: StepCall, id: string, tool: string): RecordedVerdict | undefined {
  if (recorded === undefined) return undefined;
  return verdictsIn(recorded).find((one) => one.id === id) ?? { id, tool, ...UNKNOWN };
}

/** Why a hard limit refused the call: what paths lead to, and how late it is, only the machine that ran it knew. */
export function worldLimitOf({ verdict }: RecordedVerdict): string | undefined {
  if (verdict.kind !== "refused" || verdict.cause !== "limit") return undefined;
  const reason = field(verdict.output, "reason");
  return typeof reason === "string" ? reason : "";
}

/** Whether a person would have had to grant it, and nobody was there. */
export function isUndecided({ verdict }: RecordedVerdict): boolean {
  return verdict.kind === "refused" && verdict.cause === "no_interactor";
}

/** Verdicts are made anew in a replay, except where the run was cancelled over them. */
export function decidesVerdict(recorded: RecordedOutcome): boolean {
  return verdictsIn(recorded).every(
    ({ verdict }) => verdict.kind !== "refused" || field(verdict.output, "code") !== "call_not_run",
  );
}

function verdictsIn({ value }: RecordedOutcome): readonly RecordedVerdict[] {
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

/** Counts identical calls in a row, by tool and digest. */
export interface RepeatedCalls {
  /** How often this call has now come in a row. */
  count(tool: string, argsDigest: string): number;
}

/** From this many on a call does not run; at the last it fails its state. */
export const REPEATED = 3;
export const STUCK = 6;

export function createRepeatedCalls(): RepeatedCalls {
  let last = "";
  let times = 0;
  return {
    count(tool, argsDigest) {
      const key = JSON.stringify([tool, argsDigest]);
      times = key === last ? times + 1 : 1;
      last = key;
      return times;
    },
  };
}
