import { type JsonObject, SluiceError, type ToolResult } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";

/** A failure that the model reads: what is wrong and what to do. */
export function fault(code: string, message: string, detail: JsonObject = {}): SluiceError {
  return new SluiceError("ToolTerminal", code, message, { detail });
}

/** The same as a result. */
export function failure(code: string, message: string, detail: JsonObject = {}): ToolResult {
  return { ok: false, output: { code, message, ...detail } };
}

/** Runs a tool's work and returns its failure as a value. */
export async function asResult(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (thrown) {
    const known = asFault(thrown);
    return failure(known.code, known.message, known.detail);
  }
}

/** Converts a failure of a tool or the system into one with a code and a message. */
export function asFault(thrown: unknown, what = "this path"): SluiceError {
  if (thrown instanceof SluiceError) return thrown;
  const code = systemCode(thrown);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return fault("not_found", `${what} does not exist. Use Glob to find the right path.`);
    case "EACCES":
    case "EPERM":
      return fault("permission_denied", `The system denied access to ${what}.`);
    case "EISDIR":
      return fault("is_folder", `${what} is a folder. Use Glob to list it.`);
    case "ELOOP":
      return fault("path_changed", `${what} became a link after the call was checked. Make the call again.`);
    case "ENOSPC":
    case "EDQUOT":
      return fault("disk_full", "The disk is full. Nothing was written.");
    case "EROFS":
      return fault("permission_denied", `${what} is on a read-only file system.`);
    default:
      return fault("io_error", `The system reported an error: ${code ?? messageOf(thrown)}.`);
  }
}

/** The `code` of a system error such as ENOENT; undefined for other errors. */
export function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** The result of `work`, or `fallback` if the system reports an error such as ENOENT. Other errors are rethrown. */
export function withFallback<T, F>(work: () => T, fallback: F): T | F {
  try {
    return work();
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return fallback;
  }
}

/** Throws `cancelled` if the signal is aborted. */
export function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw fault("cancelled", "The call was cancelled before it finished.");
}

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
