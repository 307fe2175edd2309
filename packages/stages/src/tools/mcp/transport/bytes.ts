const NEWLINE = 0x0a;

/** A growing buffer, so that single bytes do not cost an object each. */
interface Bytes {
  /** False if the limit would be exceeded. */
  add(piece: Uint8Array): boolean;
  /** Removes the content and returns it as text. */
  take(): string;
}

function createBytes(maxBytes: number): Bytes {
  const held = new ArrayBuffer(0, { maxByteLength: maxBytes });
  let length = 0;
  return {
    add: (piece) => {
      const needed = length + piece.length;
      if (needed > maxBytes) return false;
      if (needed > held.byteLength) held.resize(Math.min(maxBytes, Math.max(needed, length * 2, 4_096)));
      new Uint8Array(held).set(piece, length);
      length = needed;
      return true;
    },
    take: () => {
      const text = Buffer.from(held, 0, length).toString("utf8");
      length = 0;
      // Release the memory of a long message.
      if (held.byteLength > 65_536) held.resize(0);
      return text;
    },
  };
}

/** Splits bytes into lines; memory is bounded by one line. The result takes a chunk, and returns false if a line is too long. */
export function createLines(maxBytes: number, onLine: (line: string) => void): (chunk: Uint8Array) => boolean {
  const bytes = createBytes(maxBytes);
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      if (!bytes.add(chunk.subarray(from, at))) return false;
      from = at + 1;
      onLine(bytes.take().replace(/\r$/, ""));
    }
    return bytes.add(chunk.subarray(from));
  };
}

/** A body as text; undefined, without fetching the rest, if it exceeds the limit. */
export async function bodyText(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string | undefined> {
  if (body === null) return "";
  const bytes = createBytes(maxBytes);
  for await (const chunk of body) if (!bytes.add(chunk)) return undefined;
  return bytes.take();
}

/** The data of each event in a stream of server-sent events. Throws RangeError if one exceeds the limit. */
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
      // Some servers begin a stream with an event that has only an id.
      if (text.trim() !== "" && (name === "" || name === "message")) ready.push(text);
      name = "";
      data = [];
      size = 0;
      return;
    }
    size += line.length;
    const [, field = line, value = ""] = /^([^:]*): ?([\s\S]*)$/.exec(line) ?? [];
    // Drop the data of an oversized event while the rest of this chunk is read.
    if (field === "data" && size <= maxBytes) data.push(value);
    if (field === "event") name = value;
  });
  for await (const chunk of body) {
    if (!lines(chunk) || size > maxBytes) throw tooLong;
    yield* ready.splice(0);
  }
}
