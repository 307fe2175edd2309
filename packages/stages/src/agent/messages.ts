import { field, type Json, type ReceivedSignal, type RunHost, type SecretFilter, SluiceError } from "@sluice/core";

/** The name of the signal; its payload is `{ text }`. */
const SIGNAL = "message";
/** Characters of one message. */
const LONGEST_MESSAGE = 16_384;
const LONGEST_SENDER = 200;
/** Taken by one model call; what is over waits for the next. */
const MOST_AT_ONCE = 50;

/** What a person said to a run, as the step that took it records it. */
export type Message = {
  readonly by: string;
  /** Empty where the signal held no text. */
  readonly text: string;
  /** When it was sent, epoch milliseconds. */
  readonly at: number;
};

export const NO_MESSAGES: readonly Message[] = [];

/** What lets a model's step take messages: its record says which it took. */
export const takesMessages = {
  name: SIGNAL,
  count: (recorded: Json): number => {
    const messages = field(recorded, "messages");
    return Array.isArray(messages) ? messages.length : 0;
  },
};

/**
 * Says something to a run, or to a sibling's run: the model of its next turn reads it as words of a person who watches. A root
 * whose siblings work takes it when they have joined. Throws Validation `message_invalid` for no text and for more than 16,384
 * characters, Session `run_unknown`, and Session `run_finished`.
 */
export async function sendMessage(
  host: Pick<RunHost, "signal" | "get">,
  runId: string,
  text: string,
  by: string,
): Promise<void> {
  if (text.trim() === "") throw new SluiceError("Validation", "message_invalid", "a message needs a text");
  if (text.length > LONGEST_MESSAGE) {
    const mend = `at most ${LONGEST_MESSAGE} are taken; put the text into a file and name it`;
    throw new SluiceError("Validation", "message_invalid", `the message has ${text.length} characters; ${mend}`);
  }
  if ((await host.signal(runId, { name: SIGNAL, payload: { text }, by })) === "accepted") return;
  const run = await host.get(runId);
  if (run === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  throw new SluiceError("Session", "run_finished", `run ${runId} is ${run.status}; nobody reads messages to it`);
}

/** Signals may come from anybody: what a message says is cleaned, and no longer than a sender may make it. */
export function readMessages(signals: readonly ReceivedSignal[], secrets: SecretFilter): readonly Message[] {
  if (signals.length === 0) return NO_MESSAGES;
  return signals.slice(0, MOST_AT_ONCE).map(({ payload, by, at }) => {
    const text = field(payload, "text");
    return {
      by: cut(secrets.text(by), LONGEST_SENDER),
      text: typeof text === "string" ? cut(secrets.text(text), LONGEST_MESSAGE).trim() : "",
      at,
    };
  });
}

/** What the transcript's user messages say of these. */
export function messagesAsPrompt(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(({ text }) => (text === "" ? [] : [`A person watching this run says:\n${text}`]));
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()} …`;
}
