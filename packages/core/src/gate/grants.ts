import { canonicalJson, digestOf, sha256 } from "../base/canonical.ts";
import { isSluiceError, SluiceError } from "../base/errors.ts";
import { deepFreeze, type Json } from "../base/json.ts";
import type { ToolCall, ToolResult } from "./subjects.ts";
import { type BoundCall, executeOf, type PreparedCall } from "./tool.ts";

/** Which attempt of which execution of which run: a token is good for nothing else. */
export interface AttemptId {
  readonly runId: string;
  readonly executionId: string;
  /** From 1. */
  readonly attempt: number;
}

/** One tool call a model asks for. Made by `propose`, frozen to the bottom. */
export interface Proposal extends AttemptId {
  /** `t<turn>.c<index>`. */
  readonly id: string;
  readonly tool: string;
  /** Absent when the arguments could not be read; then `inputFault` says why. */
  readonly input?: Json;
  readonly inputFault?: string;
  /** SHA-256 of the canonical JSON of the raw input. */
  readonly argsDigest: string;
}
/** A call as it was read from a model's turn. */
export interface ProposedCall {
  readonly id: string;
  readonly tool: string;
  readonly input?: Json;
  readonly inputFault?: string;
}

/** What let a call through. */
export type ApprovedBy = "envelope" | "grant" | "mode";

/** Leave to run one call, once. Only the registry that made it can tell a real one from a copy. */
export interface Permit {
  readonly proposal: Proposal;
  readonly by: ApprovedBy;
}

/** Where a grant stands. It only ever moves to the right, and `denied` ends it too. */
export type GrantState = "requested" | "minted" | "denied" | "consumed" | "expired";

export interface GrantAnswer {
  readonly approve: boolean;
  /** The digest the person was shown. */
  readonly digest: string;
}

/**
 * The tokens of one attempt and the only way to run a call: propose, (request, answer,) admit, redeem.
 * Nothing here is stored: on resume the loop walks the same way again with what the journal recorded.
 */
export interface Grants {
  /** Turns a call into a proposal. An id stands for one call: the same again gives the same proposal, another call throws `proposal_conflict`. */
  propose(call: ProposedCall): Proposal;
  /** Opens the request for a grant and returns its id, the same every time. Throws `grants_closed` after the attempt. */
  request(proposal: Proposal): string;
  /** Takes the answer, once. True when it minted the token: it approved, in time, exactly what was asked. */
  answer(requestId: string, answer: GrantAnswer): boolean;
  /** Binds a call to the approval of its proposal; by `grant` it consumes the token. Undefined when there is nothing to admit by, or this was done before. */
  admit(proposal: Proposal, call: BoundCall, by: ApprovedBy): Permit | undefined;
  /** Hands out what runs the call, once per permit. Undefined for a permit that is not ours, was used, has expired, or is about another proposal. */
  redeem(permit: Permit, proposal: Proposal): PreparedCall | undefined;
  /** Says that a granted call is over: also one that an earlier process ran consumed its token. */
  spend(proposal: Proposal): void;
  /** Undefined for a request that was never made. */
  stateOf(requestId: string): GrantState | undefined;
  /** Ends the attempt: whatever was not consumed is void. Returns the requests that expired. */
  expireAll(): readonly string[];
}

interface Entry {
  readonly proposal: Proposal;
  readonly requestId: string;
  grant?: GrantState;
  admitted: boolean;
}

export function createGrants(at: AttemptId): Grants {
  const byId = new Map<string, Entry>();
  const byProposal = new WeakMap<Proposal, Entry>();
  const byRequest = new Map<string, Entry>();
  const permits = new WeakMap<Permit, BoundCall>();
  let closed = false;

  const entryOf = (proposal: Proposal): Entry => {
    const entry = byProposal.get(proposal);
    if (entry === undefined)
      throw misuse("proposal_unknown", `the proposal ${proposal.id} was not made for this attempt`);
    return entry;
  };

  return {
    propose: (call) => {
      const made = proposalOf(at, call);
      const known = byId.get(call.id);
      if (known !== undefined) {
        if (keyOf(known.proposal) === keyOf(made)) return known.proposal;
        throw misuse("proposal_conflict", `the id ${call.id} already stands for another call`);
      }
      const entry: Entry = {
        proposal: made,
        requestId: `${at.executionId}/a${at.attempt}/${call.id}`,
        admitted: false,
      };
      byId.set(call.id, entry);
      byProposal.set(made, entry);
      return made;
    },
    request: (proposal) => {
      const entry = entryOf(proposal);
      if (closed) throw misuse("grants_closed", `the attempt of proposal ${proposal.id} has ended`);
      entry.grant ??= "requested";
      byRequest.set(entry.requestId, entry);
      return entry.requestId;
    },
    answer: (requestId, { approve, digest }) => {
      const entry = byRequest.get(requestId);
      if (closed || entry?.grant !== "requested" || digest !== entry.proposal.argsDigest) return false;
      entry.grant = approve === true ? "minted" : "denied";
      return entry.grant === "minted";
    },
    admit: (proposal, call, by) => {
      const entry = entryOf(proposal);
      if (closed || entry.admitted || !isCallOf(call, proposal)) return undefined;
      // A grant that was asked for is answered by a person or not at all.
      if (by === "grant" ? entry.grant !== "minted" : entry.grant !== undefined) return undefined;
      if (by === "grant") entry.grant = "consumed";
      entry.admitted = true;
      const permit: Permit = Object.freeze({ proposal, by });
      permits.set(permit, call);
      return permit;
    },
    redeem: (permit, proposal) => {
      const call = permits.get(permit);
      if (closed || call === undefined || permit.proposal !== proposal) return undefined;
      permits.delete(permit);
      return once(executeOf(call), proposal);
    },
    spend: (proposal) => {
      const entry = entryOf(proposal);
      if (entry.grant === "minted") entry.grant = "consumed";
    },
    stateOf: (requestId) => byRequest.get(requestId)?.grant,
    expireAll: () => {
      closed = true;
      const expired = [...byRequest.values()].filter(({ grant }) => grant === "requested" || grant === "minted");
      for (const entry of expired) entry.grant = "expired";
      return expired.map((entry) => entry.requestId);
    },
  };
}

/** The digest is taken here and nowhere else; what runs is read back from the very text that was digested. */
function proposalOf(at: AttemptId, call: ProposedCall): Proposal {
  const { runId, executionId, attempt } = at;
  const { id, tool } = call;
  const unreadable = (inputFault: string): Proposal =>
    Object.freeze({
      runId,
      executionId,
      attempt,
      id,
      tool,
      inputFault,
      argsDigest: digestOf(inputFault.toWellFormed()),
    });
  if (call.input === undefined) return unreadable(call.inputFault ?? "there are no arguments");
  try {
    const text = canonicalJson(call.input);
    const input: Json = JSON.parse(text);
    return Object.freeze({ runId, executionId, attempt, id, tool, input: deepFreeze(input), argsDigest: sha256(text) });
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return unreadable(thrown.message);
    throw thrown;
  }
}

/** A JSON array, because tool names come from a model and joined strings can be made to collide. */
function keyOf({ tool, argsDigest, inputFault }: Proposal): string {
  return JSON.stringify([tool, argsDigest, inputFault === undefined]);
}

/** A call was bound from the value that was digested, not from an equal one: equal values can change apart. */
function isCallOf(call: BoundCall, proposal: Proposal): boolean {
  return proposal.input !== undefined && call.tool === proposal.tool && Object.is(call.given, proposal.input);
}

function once(work: PreparedCall, proposal: Proposal): PreparedCall {
  let spent = false;
  const execute = async (call: ToolCall): Promise<ToolResult> => {
    if (spent) throw misuse("permit_spent", `the call ${proposal.id} has been run already`);
    spent = true;
    return work.execute(call);
  };
  return Object.freeze(work.prepare === undefined ? { execute } : { prepare: work.prepare, execute });
}

/** Not a model's fault or a person's, but that of the code around the gate: it stops the run, which stays resumable. */
function misuse(code: string, message: string): SluiceError {
  return new SluiceError("Host", code, message);
}
