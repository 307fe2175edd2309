import { hash } from "node:crypto";
import type { TextMask } from "@sluice/core";
import { REDACTION_MARKER } from "@sluice/core/runtime";
import { maskedHead, NO_MASK } from "../../secrets/cut-text.ts";

/** Larger files are neither edited nor written nor shown completely. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

export function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** A file's text and encoding. */
export interface FileText {
  /** Without the byte order mark. */
  readonly text: string;
  readonly bom: boolean;
}

/** The text of bytes whose end may be missing, without the part of a character there: it would hide that a secret has begun. */
export function textOfCut(bytes: Uint8Array, isCut: boolean): string {
  return new TextDecoder().decode(bytes, { stream: isCut });
}

/** Decodes UTF-8; undefined for other bytes, which would be lost in a rewrite. */
export function decodeUtf8(bytes: Uint8Array): FileText | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
  const bom = text.startsWith("\uFEFF");
  return { text: bom ? text.slice(1) : text, bom };
}

export function encodeUtf8({ text, bom }: FileText): Buffer {
  return Buffer.from(bom && !text.startsWith("\uFEFF") ? `\uFEFF${text}` : text, "utf8");
}

export function isBinary(bytes: Uint8Array): boolean {
  return bytes.includes(0);
}

/** Whether every line of the text ends with CR LF. */
export function isCrlf(text: string): boolean {
  return text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);
}

export function toCrlf(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

export function toLf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

/** Lines without their ends; the last one counts even if it is not terminated. */
export function splitLines(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Numbers a line like `cat -n`. */
export function numbered(line: string, number: number): string {
  return `${String(number).padStart(6)}\t${line}`;
}

/** Whether the new text contains a redaction marker that the old one lacks: it would replace the secret behind it. */
export function addsRedaction(before: string, after: string): boolean {
  if (!after.includes(REDACTION_MARKER)) return false;
  const old = markers(before);
  return [...markers(after)].some(([marker, times]) => times > (old.get(marker) ?? 0));
}

function markers(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (let at = text.indexOf(REDACTION_MARKER); at !== -1; at = text.indexOf(REDACTION_MARKER, at + 1)) {
    const marker = text.slice(at, at + 120).split(/[\]\n]/, 1)[0] ?? "";
    found.set(marker, (found.get(marker) ?? 0) + 1);
  }
  return found;
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

/** The beginning of a line that is too long. Others are masked with the rest of their text. */
export function clippedLine(line: string, longest: number, secrets: TextMask = NO_MASK): string {
  return line.length <= longest ? line : maskedHead(line, longest, secrets);
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
