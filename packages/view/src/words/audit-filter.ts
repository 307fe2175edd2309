import { field, type SluiceEvent } from "@sluice/core";
import { textAt } from "./fields.ts";

/** What a boundary says of a proposal, an answer or a result. */
export type Verdict = "approved" | "refused";

/** What an audit is filtered by. */
export interface AuditFacets {
  /** The state it happened in; absent for what happened to a run as a whole. */
  readonly stage?: string;
  readonly tool?: string;
  readonly verdict?: Verdict;
}

/** What of an event an audit is filtered by. */
export function facetsOf(event: SluiceEvent): AuditFacets {
  const { executionId, data } = event;
  const tool = textAt(data, "tool") || textAt(field(data, "body"), "tool");
  const verdict = verdictIn(event);
  return {
    ...(executionId === undefined ? {} : { stage: parseExecutionId(executionId).stateId }),
    ...(tool === "" ? {} : { tool }),
    ...(verdict === undefined ? {} : { verdict }),
  };
}

/** Whether something is what all wanted facets say; one that is not wanted lets everything through. */
export function hasFacets(of: AuditFacets, { stage, tool, verdict }: AuditFacets): boolean {
  if (stage !== undefined && of.stage !== stage) return false;
  if (tool !== undefined && of.tool !== tool) return false;
  return verdict === undefined || of.verdict === verdict;
}

/** An execution's id, taken apart. */
export function parseExecutionId(executionId: string): { readonly stateId: string; readonly visit: number } {
  const [, stateId = executionId, visit = "1"] = /^(.*)#(\d{1,9})$/s.exec(executionId) ?? [];
  return { stateId, visit: Number(visit) };
}

function verdictIn({ type, data }: SluiceEvent): Verdict | undefined {
  switch (type) {
    case "call.decided":
      return textAt(data, "verdict") === "refused" ? "refused" : "approved";
    case "grant.answered":
    case "request.answered": {
      const answer = textAt(data, "answer");
      return answer === "approve" || answer === "value" ? "approved" : "refused";
    }
    case "completion.accepted":
      return "approved";
    case "completion.rejected":
    case "route.rejected":
    case "hook.vetoed":
    case "grant.expired":
    case "request.expired":
      return "refused";
    default:
      return undefined;
  }
}
