/** Characters kept at each end of what a model is shown. */
export const SHOWN_HALF = 15_000;
/** Characters kept at each end of what the journal keeps: about 1 MB in all. */
export const KEPT_HALF = 500_000;

/** Keeps the head and the tail of a text that comes in pieces, in bounded memory. */
export interface HeadTail {
  push(text: string): void;
  /** Characters seen. */
  readonly total: number;
  /** What is kept, with a line that says how much was left out. */
  text(): string;
  /** Whether something was left out. */
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
      // Trimmed only when doubled, so that many small pieces stay cheap.
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
      return `${begin}\n… [${total - begin.length - end.length} characters left out] …\n${end}`;
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
