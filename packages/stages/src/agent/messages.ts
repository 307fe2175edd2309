import {
  field,
  type Json,
  type ReceivedSignal,
  type RunHost,
  type SignalsTaken,
  SluiceError,
  type StepCall,
} from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";

// Messages that a user sends to a running agent.

/** When a model reads a message: `steer` before its next turn, `followUp` where the next execution of an agent begins. */
export type MessageKind = "steer" | "followUp";

/** The names of the signals; their payload is `{ text }`. */
const SIGNALS = { steer: "message", followUp: "followUp" } as const satisfies Record<MessageKind, string>;
/** In characters. */
const MAX_MESSAGE = 16_384;
const MAX_SENDER = 200;
/** Messages consumed by one model call; the rest wait for the next. */
const MAX_AT_ONCE = 50;

/** A message as the model step that consumed it records it. */
export type Message = {
  readonly by: string;
  /** Empty if the signal contained no text. */
  readonly text: string;
  /** When it was sent, epoch milliseconds. */
  readonly at: number;
  readonly kind?: "followUp";
};

export const NO_MESSAGES: readonly Message[] = [];
const NO_SIGNALS: readonly ReceivedSignal[] = [];

/** Lets a model step consume messages, which its record lists. */
const TAKES: SignalsTaken = {
  name: SIGNALS.steer,
  count: (recorded) => messagesIn(recorded).filter((message) => !isFollowUp(message)).length,
};
const TAKES_FOLLOW_UPS: SignalsTaken = {
  name: SIGNALS.followUp,
  count: (recorded) => messagesIn(recorded).filter(isFollowUp).length,
};
const TAKES_STEERING: readonly SignalsTaken[] = [TAKES];
const TAKES_ALL: readonly SignalsTaken[] = [TAKES, TAKES_FOLLOW_UPS];

/** What a model step of a turn consumes: follow-ups only where an execution begins. */
export function takesMessages(attempt: number, turn: number): readonly SignalsTaken[] {
  return attempt === 1 && turn === 1 ? TAKES_ALL : TAKES_STEERING;
}

function messagesIn(recorded: Json): readonly Json[] {
  const messages = field(recorded, "messages");
  return Array.isArray(messages) ? messages : [];
}

function isFollowUp(message: Json): boolean {
  return field(message, "kind") === "followUp";
}

/**
 * Sends a message to a run or to a sibling's run. A model reads it before its next turn, or, as a follow-up, in the next state that an
 * agent runs; a root in a fan-out, after the join. A suspended or sleeping run keeps it until it continues. Throws Validation `message_invalid` for an empty text or more than 16,384 characters, Session `run_unknown` and Session
 * `run_finished`.
 */
export async function sendMessage(
  host: Pick<RunHost, "signal" | "get">,
  runId: string,
  text: string,
  by: string,
  kind: MessageKind = "steer",
): Promise<void> {
  if (text.trim() === "") throw new SluiceError("Validation", "message_invalid", "the message is empty");
  if (text.length > MAX_MESSAGE) {
    const message = `the message has ${text.length} characters, the limit is ${MAX_MESSAGE}; put the text into a file and send its path`;
    throw new SluiceError("Validation", "message_invalid", message);
  }
  if ((await host.signal(runId, { name: SIGNALS[kind], payload: { text }, by })) === "accepted") return;
  const run = await host.get(runId);
  if (run === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  throw new SluiceError("Session", "run_finished", `run ${runId} is ${run.status} and accepts no messages`);
}

/** What a model step consumes, follow-ups last. Signals are untrusted: secrets are masked and long texts are cut. */
export function readMessages(
  call: Pick<StepCall, "signals">,
  taken: readonly SignalsTaken[],
  secrets: SecretFilter,
): Promise<readonly Message[]> | readonly Message[] {
  const steering = call.signals();
  const followUps = taken.includes(TAKES_FOLLOW_UPS) ? call.signals(SIGNALS.followUp) : NO_SIGNALS;
  if (steering instanceof Promise || followUps instanceof Promise)
    return Promise.all([steering, followUps]).then(([first, last]) => messagesOf(first, last, secrets));
  return messagesOf(steering, followUps, secrets);
}

function messagesOf(
  steering: readonly ReceivedSignal[],
  followUps: readonly ReceivedSignal[],
  secrets: SecretFilter,
): readonly Message[] {
  if (steering.length === 0 && followUps.length === 0) return NO_MESSAGES;
  const read = ({ payload, by, at }: ReceivedSignal): Message => {
    const text = field(payload, "text");
    return {
      by: cut(secrets.text(by), MAX_SENDER),
      text: typeof text === "string" ? cut(secrets.text(text), MAX_MESSAGE).trim() : "",
      at,
    };
  };
  const said = [...steering.map(read), ...followUps.map((signal) => ({ ...read(signal), kind: "followUp" as const }))];
  return said.slice(0, MAX_AT_ONCE);
}

const NO_TEXTS: readonly string[] = [];

/** The texts of the user messages for the transcript. */
export function messagesAsPrompt(messages: readonly Message[]): readonly string[] {
  if (messages.length === 0) return NO_TEXTS;
  return messages.flatMap(({ text }) =>
    text === "" ? [] : [`Message from a user who is watching this run:\n${text}`],
  );
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()} …`;
}
