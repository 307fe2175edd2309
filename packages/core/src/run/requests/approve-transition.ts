// A person approves a move of the machine: one transition, by the digest of what they were shown, once.
import { digestOf } from "../../base/canonical.ts";
import { SluiceError } from "../../base/errors.ts";
import {
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  numberField,
  textField,
  wellFormed,
} from "../../base/json.ts";
import type { EventDraft, EventType } from "../../journal/events.ts";
import { decodeValue } from "../../journal/record.ts";
import type { OpenRequest, RecordedOutcome, StepCall, StepOptions } from "../../journal/seam.ts";
import type { RequestStepPart } from "../../journal/step-id.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import { isDecision } from "../../machine/recorded-decision.ts";
import { decide, follow } from "../../machine/transition.ts";
import type { Effect, MachineInput } from "../../machine/transition-types.ts";
import type { Execution } from "../execution.ts";
import { cancelReason } from "../limits/limits.ts";
import { answeredByOf, awaitAnswer, type JournaledAnswer, readAnswer } from "./answer.ts";

export type ApproveEffect = Extract<Effect, { readonly kind: "approve" }>;
export type Approvable = Extract<MachineInput, { readonly kind: "answer" }>["of"];

/** A decision that is recorded, and the request that it waits for. A type, since it is recorded. */
export type PendingDecision = {
  readonly decision: NextDecision;
  /** The digest of what it is about; absent if that follows from the journal. */
  readonly about?: string;
  /** The open request; absent when there is nothing to ask, or no one. */
  readonly asks?: { readonly at: number; readonly body: JsonObject };
};

/** Where a transition is asked about, and how its records are made. */
export interface TransitionRequest {
  readonly of: Pick<Execution, "spec" | "view" | "steps" | "deps">;
  readonly requestId: string;
  /** What the machine decides about. */
  readonly input: Approvable;
  /** What the person is shown beside the move. */
  readonly facts: JsonObject;
  /** What an executor gives again after a restart, which has to be the same then. */
  readonly about?: JsonObject;
  run(
    part: RequestStepPart,
    fn: (call: StepCall) => Promise<PendingDecision>,
    options: StepOptions,
  ): Promise<PendingDecision>;
  event(type: EventType, data: JsonObject): EventDraft;
  /** Events of a decision that is final. */
  decided?(call: StepCall, decision: NextDecision): void;
  /** Waits without a concurrency slot. */
  unslotted?<T>(wait: () => Promise<T>): Promise<T>;
}

/** Records a decision, asks a person if it needs one, and returns the decision that is final. */
export async function finalDecision(
  request: TransitionRequest,
  first: (call: StepCall) => Promise<NextDecision>,
): Promise<NextDecision> {
  const now = request.about === undefined ? undefined : digestOf(request.about);
  const open = async (call: StepCall): Promise<PendingDecision> => {
    const before = recordedPending(call);
    // A replay of an earlier version's journal, which does not say.
    const about = now === undefined || (before !== undefined && before.about === undefined) ? {} : { about: now };
    const decision = await first(call);
    const { spec, view } = request.of;
    const { effect } = follow(spec, view, request.input, decision);
    if (effect.kind === "approve") return { ...(await opened(request, call, effect)), ...about };
    request.decided?.(call, decision);
    return { decision, ...about };
  };
  const { decision, asks, about: recorded } = await request.run("open", open, DECIDES_AGAIN);
  if (recorded !== undefined && recorded !== now) throw aboutOther(request);
  if (asks === undefined) return decision;
  return await answered(request, decision, asks);
}

function aboutOther({ of, requestId }: TransitionRequest): SluiceError {
  const message = `${of.steps.runId}: the journal has a decision about another event than ${requestId} sends now`;
  return new SluiceError("Host", "journal_mismatch", message);
}

/** Opens the request in the record of the decision. If no one can answer, the same record closes it. */
async function opened(request: TransitionRequest, call: StepCall, effect: ApproveEffect): Promise<PendingDecision> {
  const { of, requestId } = request;
  const { deps } = of;
  const body = wellFormed(deps.secrets.json(bodyOf(request, effect)));
  const own = isJsonObject(body) ? body : {};
  const digest = digestOf(own);
  call.event(request.event("request.opened", { requestId, kind: "approveTransition", digest, body: own }));
  const { decision } = effect;
  const before = recordedPending(call);
  const reachable = before === undefined ? deps.people.reachable() : before.asks !== undefined;
  if (reachable) return { decision, asks: { at: before?.asks?.at ?? deps.clock.now(), body: own } };
  const none = { requestId, answer: "none", cause: "no_interactor", by: "headless" };
  call.event(request.event("request.answered", none));
  return { decision: await settle(request, call, decision, "no one is available to approve it") };
}

function bodyOf({ of, facts }: TransitionRequest, { from, to, message, event }: ApproveEffect): JsonObject {
  return {
    pipeline: of.spec.id,
    from,
    to,
    ...(event === undefined ? {} : { event }),
    ...(message === undefined ? {} : { message }),
    ...facts,
  };
}

async function answered(
  request: TransitionRequest,
  decision: NextDecision,
  { at: openedAt, body }: NonNullable<PendingDecision["asks"]>,
): Promise<NextDecision> {
  const { of, requestId } = request;
  const digest = digestOf(body);
  const { runId } = of.steps;
  const open: OpenRequest = { requestId, runId, kind: "approveTransition", digest, body, openedAt };
  const wait = (): ReturnType<typeof awaitAnswer> => awaitAnswer(of, open, request);
  const received = await (request.unslotted === undefined ? wait() : request.unslotted(wait));
  const record = async (call: StepCall): Promise<PendingDecision> => {
    if (received === undefined) {
      call.event(request.event("request.expired", { requestId, cause: "cancelled" }));
      return { decision: cancelled(of.steps.signal) };
    }
    const answer = readAnswer(received);
    call.event(request.event("request.answered", { requestId, ...answeredByOf(answer, received), digest }));
    return { decision: await settle(request, call, decision, whyNot(answer, digest)) };
  };
  return (await request.run("answer", record, DECIDES_AGAIN)).decision;
}

/** What the machine makes of an answer; `why` is undefined for an approval. */
async function settle(
  request: TransitionRequest,
  call: StepCall,
  decision: NextDecision,
  why: string | undefined,
): Promise<NextDecision> {
  const { of, input } = request;
  const answer = { approved: why === undefined, ...(why === undefined ? {} : { reason: of.deps.secrets.text(why) }) };
  const final = await decide(of.spec, of.view, { kind: "answer", of: input, decision, ...answer });
  request.decided?.(call, final);
  return final;
}

/** Only an approval of what was shown counts. */
function whyNot({ kind, digest: given, reason, by }: JournaledAnswer, digest: string): string | undefined {
  switch (kind) {
    case "approve":
      return given === digest ? undefined : "the approval was for another transition";
    case "defer":
      return "the user deferred the decision";
    case "none":
      return reason === "timeout" ? "no one answered in time" : "no one is available to approve it";
    default:
      return reason ?? `denied by ${by}`;
  }
}

function cancelled(signal: AbortSignal): NextDecision {
  return { by: "default", choice: { kind: "cancel", reason: cancelReason(signal) ?? "cancelled" } };
}

/** Replay decides again, unless a cancel interrupted the decision. */
const DECIDES_AGAIN: StepOptions = {
  decides: (recorded) => {
    const { by, choice } = pendingIn(recorded).decision;
    return by !== "default" || choice.kind !== "cancel";
  },
};

function recordedPending({ recorded }: StepCall): PendingDecision | undefined {
  return recorded === undefined ? undefined : pendingIn(recorded);
}

function pendingIn({ value }: RecordedOutcome): PendingDecision {
  return decodeValue(value, isPending, "that decides about a transition");
}

function isPending(value: Json): value is PendingDecision {
  const [decision, asks] = [field(value, "decision"), field(value, "asks")];
  if (decision === undefined || !isDecision(decision)) return false;
  if (field(value, "about") !== undefined && textField(value, "about") === undefined) return false;
  return asks === undefined || (numberField(asks, "at") !== undefined && isJsonObject(field(asks, "body")));
}
