/** Standard output that carries a protocol. */
export interface ProtocolOutput {
  readonly stream: WritableStream<Uint8Array>;
  /** Gives standard output back. */
  release(): void;
}

/**
 * Reserves standard output for a protocol: what other code prints, such as a console.log of a pipeline, would break it and goes
 * to `say` instead.
 */
export function reserveOutput(stdout: Pick<NodeJS.WriteStream, "write">, say: (text: string) => void): ProtocolOutput {
  const { write } = stdout;
  const own = write.bind(stdout);
  stdout.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    if (text.trim() !== "") say(text.trimEnd());
    const callback = typeof encoding === "function" ? encoding : done;
    if (typeof callback === "function") queueMicrotask(() => callback());
    return true;
  };
  return {
    stream: new WritableStream({
      write: (chunk) =>
        new Promise((resolve, reject) => {
          own(chunk, (fault) => (fault === undefined || fault === null ? resolve() : reject(fault)));
        }),
    }),
    release: () => {
      stdout.write = write;
    },
  };
}
