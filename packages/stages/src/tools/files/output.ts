/** Characters shown to the model from each end of an output. */
export const SHOWN_HALF = 15_000;
/** Characters kept in the journal from each end: about 1 MB together. */
export const KEPT_HALF = 500_000;

/** Keeps the head and the tail of a streamed text in bounded memory. */
export interface HeadTail {
  push(text: string): void;
  /** Characters received. */
  readonly total: number;
  /** What was kept, with a line that says how much was omitted. */
  text(): string;
  /** Whether something was omitted. */
  readonly cut: boolean;
}

export function headTail(half: number): HeadTail {
  let head = "";
  let tail = "";
  let total = 0;
  return {
    push(text) {
      total += text.length;
      const room = half - head.length;
      if (room > 0) head += text.slice(0, room);
      tail += text.slice(Math.max(0, room));
      // Trimmed only at twice the length, so that many small pieces stay cheap.
      if (tail.length > half * 2) tail = tail.slice(-half);
    },
    get total() {
      return total;
    },
    get cut() {
      return total > half * 2;
    },
    text() {
      if (total <= half * 2) return head + tail;
      const begin = withoutBrokenEnd(head);
      const end = withoutBrokenStart(tail.slice(-half));
      return `${begin}\n… [${total - begin.length - end.length} characters omitted] …\n${end}`;
    },
  };
}

/** The first `length` characters, never half of a surrogate pair. */
export function firstCharacters(text: string, length: number): string {
  return text.length <= length ? text : withoutBrokenEnd(text.slice(0, length));
}

function withoutBrokenEnd(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

function withoutBrokenStart(text: string): string {
  const first = text.charCodeAt(0);
  return first >= 0xdc00 && first <= 0xdfff ? text.slice(1) : text;
}

/** `1 line`, `2 lines`. */
export function count(amount: number, one: string, many = `${one}s`): string {
  return `${amount} ${amount === 1 ? one : many}`;
}

/** Appends remarks to a result in brackets, on a line after its text. */
export function withRemarks(text: string, remarks: readonly string[]): string {
  return remarks.length === 0 ? text : `${text}\n[${remarks.join(" ")}]`;
}
