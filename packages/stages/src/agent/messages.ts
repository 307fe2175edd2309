import { field, type Json, type ReceivedSignal, type RunHost, SluiceError } from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";

// Messages that a user sends to a running agent.

/** The signal's name; its payload is `{ text }`. */
const SIGNAL = "message";
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
};

export const NO_MESSAGES: readonly Message[] = [];

/** Lets a model step consume messages, which its record lists. */
export const takesMessages = {
  name: SIGNAL,
  count: (recorded: Json): number => {
    const messages = field(recorded, "messages");
    return Array.isArray(messages) ? messages.length : 0;
  },
};

/**
 * Sends a message to a run or to a sibling's run. The model reads it in its next turn; a root in a fan-out, after the join.
 * Throws Validation `message_invalid` for an empty text or more than 16,384 characters, Session `run_unknown` and Session
 * `run_finished`.
 */
export async function sendMessage(
  host: Pick<RunHost, "signal" | "get">,
  runId: string,
  text: string,
  by: string,
): Promise<void> {
  if (text.trim() === "") throw new SluiceError("Validation", "message_invalid", "the message is empty");
  if (text.length > MAX_MESSAGE) {
    const message = `the message has ${text.length} characters, the limit is ${MAX_MESSAGE}; put the text into a file and send its path`;
    throw new SluiceError("Validation", "message_invalid", message);
  }
  if ((await host.signal(runId, { name: SIGNAL, payload: { text }, by })) === "accepted") return;
  const run = await host.get(runId);
  if (run === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  throw new SluiceError("Session", "run_finished", `run ${runId} is ${run.status} and accepts no messages`);
}

/** Signals are untrusted: secrets are masked and long texts are cut. */
export function readMessages(signals: readonly ReceivedSignal[], secrets: SecretFilter): readonly Message[] {
  if (signals.length === 0) return NO_MESSAGES;
  return signals.slice(0, MAX_AT_ONCE).map(({ payload, by, at }) => {
    const text = field(payload, "text");
    return {
      by: cut(secrets.text(by), MAX_SENDER),
      text: typeof text === "string" ? cut(secrets.text(text), MAX_MESSAGE).trim() : "",
      at,
    };
  });
}

/** The texts of the user messages for the transcript. */
export function messagesAsPrompt(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(({ text }) =>
    text === "" ? [] : [`Message from a user who is watching this run:\n${text}`],
  );
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()} …`;
}
