import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { Grants, Proposal } from "../../gate/grants.ts";
import type { AttemptJournal } from "../attempt-steps.ts";
import type { Execution } from "../execution.ts";
import type { CallRequest, Offer } from "../executor.ts";
import type { Place } from "../limits/concurrency-slot.ts";
import type { Limits } from "../limits/limits.ts";

/** What the calls of one attempt share. */
export interface CallsOf {
  readonly execution: Execution;
  readonly journal: AttemptJournal;
  readonly ctx: StageContext;
  readonly offer: Offer;
  readonly place: Place;
  readonly limits: Limits;
  readonly completionTool: string;
  readonly grants: Grants;
  /** What results left for later calls of this attempt, such as the hashes of files that were read. */
  readonly notes: Record<string, Json>;
  proposalOf(id: string): Proposal | undefined;
}
export interface Proposed {
  readonly proposal: Proposal;
  readonly request: CallRequest;
  /** How often this very call has come in a row. */
  readonly times: number;
}
/** Neighbouring reads are judged and run together; anything else is alone, after what came before it has run. */
export type Group = readonly Proposed[];
