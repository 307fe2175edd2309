import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { Grants, Proposal } from "../../gate/grants.ts";
import type { AttemptJournal } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import type { AvailableTools, CallRequest } from "../executor.ts";
import type { ConcurrencySlot } from "../limits/concurrency-slot.ts";
import type { Deadline } from "../limits/limits.ts";

/** What the calls of one attempt share. */
export interface ToolCallContext {
  readonly execution: Execution;
  readonly journal: AttemptJournal;
  readonly ctx: StageContext;
  readonly offer: AvailableTools;
  readonly slot: ConcurrencySlot;
  readonly limits: Deadline;
  readonly completionTool: string;
  readonly grants: Grants;
  /** Notes of results for later calls of this attempt, such as the hashes of files that were read. */
  readonly notes: Record<string, Json>;
  proposalOf(id: string): Proposal | undefined;
}
export interface ProposedToolCall {
  readonly proposal: Proposal;
  readonly request: CallRequest;
  /** How often this call was proposed in a row. */
  readonly times: number;
}
/** Adjacent reads, which are authorized and run together, or one other call. */
export type CallGroup = readonly ProposedToolCall[];
