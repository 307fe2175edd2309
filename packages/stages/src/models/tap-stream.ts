import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** What observes a model's stream. Exactly one of `failed`, `done` and `left` ends it. */
export interface StreamTap {
  readonly part: (part: LanguageModelV4StreamPart) => void;
  readonly failed: (thrown: unknown) => void;
  /** Called before the reader sees the end. */
  readonly done: () => void;
  /** The reader stopped reading. */
  readonly left: () => void;
}

/** The same stream, observed. Nothing is read ahead, so that exactly the consumed parts are observed. */
export function tapStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  tap: StreamTap,
): ReadableStream<LanguageModelV4StreamPart> {
  const reader = stream.getReader();
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        try {
          const next = await reader.read();
          if (!next.done) {
            tap.part(next.value);
            controller.enqueue(next.value);
            return;
          }
        } catch (thrown) {
          tap.failed(thrown);
          throw thrown;
        }
        tap.done();
        controller.close();
      },
      async cancel(reason) {
        try {
          tap.left();
        } finally {
          await reader.cancel(reason);
        }
      },
    },
    { highWaterMark: 0 },
  );
}
