import { canonicalJson, digestOf, sha256 } from "../base/canonical.ts";
import { isSluiceError, SluiceError } from "../base/errors.ts";
import { deepFreeze, type Json } from "../base/json.ts";
import type { ToolCall, ToolResult } from "./subjects.ts";
import { type BoundCall, executeOf, type PreparedCall } from "./tool.ts";

/** One attempt of one execution of one run. A grant's token is valid only there. */
export interface AttemptId {
  readonly runId: string;
  readonly executionId: string;
  /** From 1. */
  readonly attempt: number;
}

/** A call as read from a model's turn. */
export interface ProposedCall {
  /** `t<turn>.c<index>`. */
  readonly id: string;
  readonly tool: string;
  /** Absent when the arguments could not be parsed; `inputFault` then gives the reason. */
  readonly input?: Json;
  readonly inputFault?: string;
}
/** A call of one attempt. Made by `propose` and deeply frozen. */
export interface Proposal extends AttemptId, ProposedCall {
  /** SHA-256 of the canonical JSON of the raw input. */
  readonly argsDigest: string;
}

export type ApprovedBy = "envelope" | "grant" | "mode";

/** Permission to run one call once. Compared by identity, so a copy is worthless. */
export interface Permit {
  readonly proposal: Proposal;
  readonly by: ApprovedBy;
}

/** `requested` becomes `minted` or `denied`; `minted` becomes `consumed`; both expire with the attempt. */
export type GrantState = "requested" | "minted" | "denied" | "consumed" | "expired";

export interface GrantAnswer {
  readonly approve: boolean;
  /** The digest shown to the person. */
  readonly digest: string;
}

/**
 * The tokens of one attempt and the only way to run a call: propose, request and answer if a grant is needed, admit, redeem.
 * Kept in memory; on resume the same calls are made again with the recorded answers.
 */
export interface Grants {
  /** Returns the same proposal for the same call, and throws `proposal_conflict` for another call with its id. */
  propose(call: ProposedCall): Proposal;
  /** Opens the request for a grant, if it is not open, and returns its id. Throws `grants_closed` after the attempt. */
  request(proposal: Proposal): string;
  /** Accepts the first answer. Returns whether it minted the token: it is an approval of the requested digest. */
  answer(requestId: string, answer: GrantAnswer): boolean;
  /** Makes the permit of an approved call, once; by `grant` it consumes the token. Undefined if the call is not approved that way. */
  admit(proposal: Proposal, call: BoundCall, by: ApprovedBy): Permit | undefined;
  /** Returns the work of a call, once per permit. Undefined if the permit is unknown, used, expired or for another proposal. */
  redeem(permit: Permit, proposal: Proposal): PreparedCall | undefined;
  /** Consumes the token of a granted call that has ended, in case an earlier process ran it. */
  spend(proposal: Proposal): void;
  /** Undefined for an unknown request. */
  stateOf(requestId: string): GrantState | undefined;
  /** Ends the attempt and voids everything that was not consumed. Returns the requests that expired. */
  expireAll(): readonly string[];
}

interface Entry {
  readonly proposal: Proposal;
  readonly requestId: string;
  grant?: GrantState;
  admitted: boolean;
}

export function createGrants(attemptId: AttemptId): Grants {
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
      const proposal = proposalOf(attemptId, call);
      const known = byId.get(call.id);
      if (known !== undefined) {
        if (keyOf(known.proposal) === keyOf(proposal)) return known.proposal;
        throw misuse("proposal_conflict", `the id ${call.id} already belongs to another call`);
      }
      const requestId = `${attemptId.executionId}/a${attemptId.attempt}/${call.id}`;
      const entry: Entry = { proposal, requestId, admitted: false };
      byId.set(call.id, entry);
      byProposal.set(proposal, entry);
      return proposal;
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
      // A call with a request is approved only by its answer.
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

/** Takes the digest, and parses the input from the digested text, so that what runs is what the digest is of. */
function proposalOf({ runId, executionId, attempt }: AttemptId, call: ProposedCall): Proposal {
  const { id, tool } = call;
  const identity = { runId, executionId, attempt, id, tool };
  const unreadable = (inputFault: string): Proposal =>
    Object.freeze({ ...identity, inputFault, argsDigest: digestOf(inputFault.toWellFormed()) });
  if (call.input === undefined) return unreadable(call.inputFault ?? "there are no arguments");
  try {
    const text = canonicalJson(call.input);
    const input: Json = JSON.parse(text);
    return Object.freeze({ ...identity, input: deepFreeze(input), argsDigest: sha256(text) });
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return unreadable(thrown.message);
    throw thrown;
  }
}

/** A JSON array, because tool names come from a model and concatenated strings could collide. */
function keyOf({ tool, argsDigest, inputFault }: Proposal): string {
  return JSON.stringify([tool, argsDigest, inputFault === undefined]);
}

/** The call has to be bound from the digested value itself; an equal one could be changed later. */
function isCallOf(call: BoundCall, proposal: Proposal): boolean {
  return proposal.input !== undefined && call.tool === proposal.tool && Object.is(call.given, proposal.input);
}

function once(work: PreparedCall, proposal: Proposal): PreparedCall {
  let started = false;
  const execute = async (call: ToolCall): Promise<ToolResult> => {
    if (started) throw misuse("permit_spent", `the call ${proposal.id} was already run`);
    started = true;
    return work.execute(call);
  };
  return Object.freeze(work.prepare === undefined ? { execute } : { prepare: work.prepare, execute });
}

/** A bug in the code around the gate. It stops the run, which can be resumed. */
function misuse(code: string, message: string): SluiceError {
  return new SluiceError("Host", code, message);
}
