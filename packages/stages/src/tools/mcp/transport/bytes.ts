const NEWLINE = 0x0a;

/** Bytes in one buffer that grows: whoever sends single bytes must not cost an object for each. */
interface Bytes {
  /** False when they would be more than they may be. */
  add(piece: Uint8Array): boolean;
  /** What is there as text; nothing is there afterwards. */
  take(): string;
}

function createBytes(maxBytes: number): Bytes {
  let held = Buffer.alloc(0);
  let length = 0;
  return {
    add: (piece) => {
      const needed = length + piece.length;
      if (needed > maxBytes) return false;
      if (needed > held.length) {
        const grown = Buffer.alloc(Math.min(maxBytes, Math.max(needed, held.length * 2, 4_096)));
        held.copy(grown, 0, 0, length);
        held = grown;
      }
      held.set(piece, length);
      length = needed;
      return true;
    },
    take: () => {
      const text = held.toString("utf8", 0, length);
      length = 0;
      // One long message is no reason to keep its room for ever.
      if (held.length > 65_536) held = Buffer.alloc(0);
      return text;
    },
  };
}

export interface LineReader {
  /** False once a line is longer than it may be. */
  push(chunk: Uint8Array): boolean;
}

/** Cuts bytes into lines, in memory for one line, whatever pieces they come in. */
export function createLines(maxBytes: number, onLine: (line: string) => void): LineReader {
  const bytes = createBytes(maxBytes);
  return {
    push: (chunk) => {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
        if (!bytes.add(chunk.subarray(from, at))) return false;
        from = at + 1;
        onLine(bytes.take().replace(/\r$/, ""));
      }
      return bytes.add(chunk.subarray(from));
    },
  };
}

/** A body as text, or undefined when it is longer than it may be; then the rest is not fetched. */
export async function bodyText(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string | undefined> {
  if (body === null) return "";
  const bytes = createBytes(maxBytes);
  for await (const chunk of body) if (!bytes.add(chunk)) return undefined;
  return bytes.take();
}

/** The data of each message in a stream of server-sent events. Throws RangeError when one is longer than it may be. */
export async function* eventData(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, undefined> {
  const tooLong = new RangeError(`an event of more than ${maxBytes} bytes`);
  const ready: string[] = [];
  let name = "";
  let data: string[] = [];
  let size = 0;
  const lines = createLines(maxBytes, (line) => {
    if (line === "") {
      const text = data.join("\n");
      // Some begin a stream with an event that has an id and nothing else.
      if (text.trim() !== "" && (name === "" || name === "message")) ready.push(text);
      name = "";
      data = [];
      size = 0;
      return;
    }
    size += line.length;
    const [, field = line, value = ""] = /^([^:]*): ?([\s\S]*)$/.exec(line) ?? [];
    // An event that is too long is not kept while the rest of this piece is read.
    if (field === "data" && size <= maxBytes) data.push(value);
    if (field === "event") name = value;
  });
  for await (const chunk of body) {
    if (!lines.push(chunk) || size > maxBytes) throw tooLong;
    yield* ready.splice(0);
  }
}
