/**
 * Catches what anybody writes to stderr while the app draws, such as a warning of the runtime: on the screen it would stand
 * in the middle of a frame. Returns how to let it through again.
 */
export function catchStrayOutput(say: (text: string) => void): () => void {
  const { stderr } = process;
  const write = stderr.write;
  stderr.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    if (text.trim() !== "") say(text.trimEnd());
    const called = typeof encoding === "function" ? encoding : done;
    if (typeof called === "function") queueMicrotask(() => called());
    return true;
  };
  return () => {
    stderr.write = write;
  };
}
