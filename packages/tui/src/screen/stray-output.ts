import { Writable } from "node:stream";

/**
 * Catches what anybody else writes to stdout or stderr while the app is there, such as a warning of the runtime or a
 * console.log in a pipeline's code: it would stand in the middle of a frame, and what it says of a model's text would reach
 * the terminal as it is. Returns how to let it through again.
 */
export function catchStrayOutput(
  streams: readonly Pick<NodeJS.WriteStream, "write">[],
  say: (text: string) => void,
): () => void {
  const letThrough = streams.map((stream) => {
    const { write } = stream;
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
      if (text.trim() !== "") say(text.trimEnd());
      const called = typeof encoding === "function" ? encoding : done;
      if (typeof called === "function") queueMicrotask(() => called());
      return true;
    };
    return () => {
      stream.write = write;
    };
  });
  return () => {
    for (const restore of letThrough) restore();
  };
}

/** The app's own way to a terminal: made before what others write there is caught. */
export class OwnOutput extends Writable {
  readonly #stdout: NodeJS.WriteStream;
  readonly #send: (text: string) => boolean;

  constructor(stdout: NodeJS.WriteStream) {
    super({ decodeStrings: false });
    this.#stdout = stdout;
    this.#send = stdout.write.bind(stdout);
    stdout.on("resize", () => this.emit("resize"));
  }

  /** Readline breaks what is typed by it. */
  get columns(): number {
    return this.#stdout.columns || 80;
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#send(String(chunk));
    done();
  }
}
