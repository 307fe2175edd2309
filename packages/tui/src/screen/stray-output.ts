import { Writable } from "node:stream";

/**
 * Redirects output of other code, such as runtime warnings or a console.log in a pipeline, to `say`: it would break the frame
 * and reach the terminal unescaped. Returns how to stop.
 */
export function catchStrayOutput(
  streams: readonly Pick<NodeJS.WriteStream, "write">[],
  say: (text: string) => void,
): () => void {
  const restores = streams.map((stream) => {
    const { write } = stream;
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
      if (text.trim() !== "") say(text.trimEnd());
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") queueMicrotask(() => callback());
      return true;
    };
    return () => {
      stream.write = write;
    };
  });
  return () => {
    for (const restore of restores) restore();
  };
}

/** Writes to the terminal past the redirection; create it before. */
export class OwnOutput extends Writable {
  readonly #stdout: NodeJS.WriteStream;
  readonly #send: (text: string) => boolean;

  constructor(stdout: NodeJS.WriteStream) {
    super({ decodeStrings: false });
    this.#stdout = stdout;
    this.#send = stdout.write.bind(stdout);
    stdout.on("resize", () => this.emit("resize"));
  }

  /** Readline wraps its input at this width. */
  get columns(): number {
    return this.#stdout.columns || 80;
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#send(String(chunk));
    done();
  }
}
