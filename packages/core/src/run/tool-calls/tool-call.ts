import type { Json, JsonObject } from "../../base/json.ts";
import type { Authorization, Policy, SealedCall } from "../../gate/authorize-call.ts";
import type { FileEdit, Subject } from "../../gate/subjects.ts";
import type { CallUsage } from "../../gate/usage.ts";
import type { Attempt } from "../attempt.ts";
import type { JournaledAnswer } from "../requests/answer.ts";
import type { RecordedVerdict } from "./verdict.ts";

/** What the calls of one attempt share. */
export interface ToolCallContext {
  readonly attempt: Attempt;
  readonly policy: Policy;
  /** Notes of results for later calls of this attempt, such as the hashes of files that were read. */
  readonly notes: Record<string, Json>;
  /** Requests for grants that were neither denied nor consumed. */
  readonly openRequests: Set<string>;
}

/** A call with its recorded verdict. */
export interface DecidedCall {
  readonly call: SealedCall;
  readonly verdict: RecordedVerdict;
  /** Of the calls before it; `last` and `times` count this call. */
  readonly usage: CallUsage;
  /** What the gate allows this process; absent if an earlier process decided. */
  readonly authorization?: Authorization | undefined;
  /** The request for a grant, if there was one. */
  readonly asked?: AskedCall;
}
export interface AskedCall {
  /** What the person was shown. */
  readonly body: JsonObject;
  readonly subjects: readonly Subject[];
  readonly edits?: readonly FileEdit[] | undefined;
  /** Absent if the run was cancelled first. */
  readonly answer: JournaledAnswer | undefined;
}
