import { SluiceError } from "@sluice/core";

const MIB = 1024 * 1024;
/** One event of a stream: some providers send all arguments of a call, up to 10 MiB, in one event. */
const MAX_EVENT_BYTES = 16 * MIB;
/** A whole response: an event of some hundred bytes may carry a few characters. */
const MAX_RESPONSE_BYTES = 256 * MIB;
/** The body of an error response. */
const MAX_ERROR_BYTES = MIB;

/** A frame begins with its length, a big-endian integer of four bytes that counts itself. */
const LENGTH_BYTES = 4;

const LF = 0x0a;
const CR = 0x0d;

/** How a stream separates its events: by empty lines, or as the binary frames of Amazon's services. */
export type EventForm = "lines" | "frames";
const EVENTS = { lines: wholeLines, frames: wholeFrames } as const;

/** Limits the size of a response's body, because the provider packages read bodies of any size. */
export function boundedResponse(response: Response, events: EventForm = "lines"): Response {
  const { body, ok, status, statusText, headers } = response;
  if (body === null) return response;
  const bounded = body.pipeThrough(ok ? EVENTS[events]() : beginning(MAX_ERROR_BYTES));
  return new Response(bounded, { status, statusText, headers });
}

/**
 * Forwards whole lines only, because event parsers scan an incomplete line again with every chunk. Fails with ProviderCapability
 * `reply_too_large` if an event or the response is too large.
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
    // The reader owns the enqueued buffer.
    held = Buffer.alloc(0);
    length = 0;
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      bounds.count(chunk);
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

/** Fails with ProviderCapability `reply_too_large` if a frame or the response is too large. */
function wholeFrames(): TransformStream<Uint8Array, Uint8Array> {
  let total = 0;
  /** Bytes of the current frame that have not arrived; 0 before its length is known. */
  let missing = 0;
  let length = 0;
  let lengthBytes = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      total += chunk.length;
      if (total > MAX_RESPONSE_BYTES)
        throw tooLarge(`the provider's response has more than ${MAX_RESPONSE_BYTES} bytes`);
      for (let at = 0; at < chunk.length; ) {
        if (missing > 0) {
          const step = Math.min(missing, chunk.length - at);
          missing -= step;
          at += step;
          continue;
        }
        length = length * 256 + (chunk[at] ?? 0);
        lengthBytes += 1;
        at += 1;
        if (lengthBytes < LENGTH_BYTES) continue;
        if (length > MAX_EVENT_BYTES)
          throw tooLarge(`the provider's response contains an event of more than ${MAX_EVENT_BYTES} bytes`);
        missing = Math.max(0, length - LENGTH_BYTES);
        length = 0;
        lengthBytes = 0;
      }
      controller.enqueue(chunk);
    },
  });
}

/** Counts the bytes of a response and of its current event, which ends with an empty line. */
class EventBounds {
  #total = 0;
  #event = 0;
  #line = 0;
  #last = 0;

  count(chunk: Uint8Array): void {
    this.#total += chunk.length;
    if (this.#total > MAX_RESPONSE_BYTES)
      throw tooLarge(`the provider's response has more than ${MAX_RESPONSE_BYTES} bytes`);
    let event = this.#event;
    let line = this.#line;
    let last = this.#last;
    // An index loop over locals is seven times as fast, and this runs for every byte of every response.
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      event += 1;
      if (byte !== LF && byte !== CR) line += 1;
      // CR LF is one line end.
      else if (line > 0) line = 0;
      else if (byte !== LF || last !== CR) event = 0;
      last = byte ?? 0;
      if (event > MAX_EVENT_BYTES)
        throw tooLarge(`the provider's response contains an event of more than ${MAX_EVENT_BYTES} bytes`);
    }
    this.#event = event;
    this.#line = line;
    this.#last = last;
  }
}

/** The index after the last line end in a chunk, or 0. A final CR does not count, because LF may follow. */
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
