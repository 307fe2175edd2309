import { randomUUID } from "node:crypto";
import { field, type Json } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { AgentCall, CallReply, NativeReport, NativeVerdict, PendingCall, ReplyPart } from "./gateway-run-types.ts";
import type { RecordedCallPlace } from "./recorded-calls.ts";
import type { Thread } from "./transcripts.ts";
import {
  gatewayPart,
  isRefusal,
  partsOf,
  RAN_BEFORE,
  READ_BEFORE,
  REFUSED_BEFORE,
  replyWith,
  TRANSITION,
} from "./words.ts";

/** A call of the agent, from its arrival until a caller has its answer. */
export interface CallInFlight {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
  /** Undefined also if an earlier process took the call and it is not known whose program runs it. */
  native?: true;
  readonly isUnclear?: true;
  /** Its input is the recorded one. */
  readonly isAdopted?: true;
  readonly reported: PromiseWithResolvers<NativeReport>;
  /** Who waits for the answer; none while a person is asked and the agent knows that. */
  caller?: Caller;
  progress: Progress;
  /** The turn of another parallel state that goes first, as its agent has read. */
  waitsFor?: Turn;
  /** The calls, by their keys, whose answer was that this approved one goes first. */
  readonly goesBefore: Set<string>;
  /** Its place in the run, once the run has it. */
  place?: RecordedCallPlace & { readonly thread?: Thread };
  /** An earlier process took it, and the agent has not made it again, or made it again after it had ended. */
  earlier?: "begun" | "ended";
}

/** A state that has its turn. */
export type Turn = Pick<RecordedCallPlace, "runId" | "executionId">;

/** How far a call is. Each step follows the one before; an answer may follow any of them. */
type Progress =
  /** It waits for a turn of the run. */
  | { readonly kind: "queued" }
  /** The run has it. */
  | { readonly kind: "given" }
  /** It was approved, and the agent's program may run it with this input. */
  | { readonly kind: "handed"; readonly input: Json }
  /** Its approval has been used, or is not valid any more. */
  | { readonly kind: "over" }
  /** While it has no caller, the answer waits for the same call made again; read once another answer has brought it. */
  | { readonly kind: "answered"; readonly reply: CallReply; isRead: boolean };

export type AnsweredCall = CallInFlight & { readonly progress: { readonly kind: "answered" } };

export function isAnswered(call: CallInFlight): call is AnsweredCall {
  return call.progress.kind === "answered";
}

/** The answer to a call that is made again after it has ended. */
export function replyAgain(call: AnsweredCall): CallReply {
  const { reply, isRead } = call.progress;
  const before = isRead ? [gatewayPart(isRefusal(reply) ? REFUSED_BEFORE : READ_BEFORE)] : beforeParts(call, reply);
  return before.length === 0 ? reply : replyWith(reply, [...before, ...partsOf(reply)]);
}

/** What the agent reads before the answer of a call that an earlier process took. */
export function beforeParts({ earlier }: CallInFlight, reply: CallReply): readonly ReplyPart[] {
  if (earlier === undefined) return [];
  return [gatewayPart(isRefusal(reply) ? REFUSED_BEFORE : RAN_BEFORE)];
}

/** One who waits for the answer of a call. */
export interface Caller {
  readonly pending: PendingCall;
  /** Which of the agent's own agents; undefined for the main one. */
  readonly agent: string | undefined;
  report: PendingCall["report"];
  /** The approved call that goes first, as its agent knew when it made this one. */
  passesOver?: CallInFlight;
  /** Answers as soon as it has waited for long. */
  wait: () => void;
  disarm: () => void;
  /** Answers now, unless it has to wait longer. */
  hurry: () => void;
  allow(input: Json): void;
  settle(reply: CallReply): void;
}

/** A call as its agent makes it. */
export type CallFacts = Pick<AgentCall, "tool" | "input" | "native">;

export function newCall(call: CallFacts & Pick<CallInFlight, "isUnclear" | "isAdopted">): CallInFlight {
  return {
    ...call,
    id: `agent_${randomUUID()}`,
    goesBefore: new Set(),
    reported: Promise.withResolvers(),
    progress: { kind: "queued" },
  };
}

/**
 * Equal for calls of one tool with the same arguments, from which known secrets were taken. A state may take the call of a tool as a
 * transition with its name: both are the same call.
 */
export function keyOfCall({ tool, input }: Pick<CallFacts, "tool" | "input">): string {
  const event = tool === TRANSITION ? field(input, "event") : undefined;
  const [name, given] = typeof event === "string" ? [event, field(input, "data") ?? {}] : [tool, input];
  return JSON.stringify([name, digestOf(given)]);
}

/** The same call made from now on must not get the approval of this one. */
export function endApproval(call: CallInFlight): void {
  if (call.progress.kind === "handed") call.progress = { kind: "over" };
}

/** Ends a native call that no program runs. */
export function withdraw(call: CallInFlight, report: NativeReport): void {
  if (call.progress.kind !== "handed") return;
  endApproval(call);
  call.reported.resolve(report);
}

/** Lets the agent's program run a native call that was approved. */
export function passApproval({ caller, progress }: CallInFlight): void {
  if (caller === undefined || progress.kind !== "handed") return;
  caller.disarm();
  caller.allow(progress.input);
}

export function newCaller(agent: string | undefined): Caller {
  const verdict = Promise.withResolvers<NativeVerdict>();
  const answer = Promise.withResolvers<CallReply>();
  const caller: Caller = {
    pending: { verdict: verdict.promise, answer: answer.promise, report: (result) => caller.report(result) },
    agent,
    report: () => undefined,
    wait: () => undefined,
    disarm: () => undefined,
    hurry: () => undefined,
    allow: (input) => verdict.resolve({ kind: "allow", input }),
    settle: (reply) => {
      caller.disarm();
      const { text, waiting } = reply;
      verdict.resolve({ kind: "deny", text, ...(waiting === undefined ? {} : { waiting }) });
      answer.resolve(reply);
    },
  };
  return caller;
}
