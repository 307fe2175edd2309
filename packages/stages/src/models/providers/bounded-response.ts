import { SluiceError } from "@sluice/core";

const MIB = 1024 * 1024;
/** One event of a stream: the arguments of a call, which may have 10 MiB, come in one from some providers. */
const MAX_EVENT_BYTES = 16 * MIB;
/** All of an answer: each of its few characters comes in an event of some hundred bytes. */
const MAX_ANSWER_BYTES = 256 * MIB;
/** What of a refusal is read; its status says what matters. */
const MAX_REFUSAL_BYTES = MIB;

const LF = 0x0a;
const CR = 0x0d;

/** The same response with a body that ends where no honest one would: the provider packages read bodies of any length. */
export function boundedResponse(response: Response): Response {
  const { body, ok, status, statusText, headers } = response;
  if (body === null) return response;
  const bounded = body.pipeThrough(ok ? wholeLines() : beginning(MAX_REFUSAL_BYTES));
  return new Response(bounded, { status, statusText, headers });
}

/**
 * Hands on whole lines of a body, since whoever parses events reads the beginning of a line anew with each of its pieces.
 * Fails the body with ProviderCapability `reply_too_large` when an event, or all of them, are too long.
 */
function wholeLines(): TransformStream<Uint8Array, Uint8Array> {
  const bounds = new EventBounds();
  let held = Buffer.alloc(0);
  let length = 0;
  const hold = (piece: Uint8Array): void => {
    if (length + piece.length > held.length) {
      const grown = Buffer.alloc(Math.max(length + piece.length, 2 * held.length, 4_096));
      held.copy(grown, 0, 0, length);
      held = grown;
    }
    held.set(piece, length);
    length += piece.length;
  };
  const release = (controller: TransformStreamDefaultController<Uint8Array>): void => {
    if (length === 0) return;
    controller.enqueue(held.subarray(0, length));
    // What was handed on belongs to its reader.
    held = Buffer.alloc(0);
    length = 0;
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      bounds.take(chunk);
      const end = lastLineEnd(chunk);
      if (end === 0) {
        hold(chunk);
        return;
      }
      if (length > 0) hold(chunk.subarray(0, end));
      else controller.enqueue(chunk.subarray(0, end));
      release(controller);
      if (end < chunk.length) hold(chunk.subarray(end));
    },
    flush: release,
  });
}

/** Counts the bytes of an answer and of the event that has begun, which ends with an empty line. */
class EventBounds {
  #answer = 0;
  #event = 0;
  #line = 0;
  #last = 0;

  take(chunk: Uint8Array): void {
    this.#answer += chunk.length;
    if (this.#answer > MAX_ANSWER_BYTES)
      throw tooLarge(`the provider's answer has more than ${MAX_ANSWER_BYTES} bytes`);
    let event = this.#event;
    let line = this.#line;
    let last = this.#last;
    // By index and with locals only, which is seven times as fast: it is done for every byte of every answer.
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      event += 1;
      if (byte !== LF && byte !== CR) line += 1;
      // A carriage return and a line feed are one end together.
      else if (line > 0) line = 0;
      else if (byte !== LF || last !== CR) event = 0;
      last = byte ?? 0;
      if (event > MAX_EVENT_BYTES)
        throw tooLarge(`the provider's answer holds an event of more than ${MAX_EVENT_BYTES} bytes`);
    }
    this.#event = event;
    this.#line = line;
    this.#last = last;
  }
}

/** Behind the last end of a line in a chunk; 0 when there is none. A carriage return at its end may be half of one. */
function lastLineEnd(chunk: Uint8Array): number {
  return Math.max(chunk.lastIndexOf(LF), chunk.lastIndexOf(CR, chunk.length - 2)) + 1;
}

function beginning(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let left = bytes;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) controller.terminate();
    },
  });
}

function tooLarge(message: string): SluiceError {
  return new SluiceError("ProviderCapability", "reply_too_large", message);
}
