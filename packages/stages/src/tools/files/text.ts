import { hash } from "node:crypto";
import { REDACTION_MARKER } from "@sluice/core/runtime";
import { diffArrays } from "diff/lib/diff/array.js";

/** Larger files are neither edited nor written nor shown completely. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** Changed lines beyond which the exact difference is not computed. */
const MAX_DIFF_LENGTH = 1_000;
/** Lines times changed lines to compare; bounds the work, since the difference is only a remark. */
const MAX_DIFF_WORK = 4_000_000;
/** Lines beyond which even a small difference is not computed. */
const MAX_DIFF_LINES = 100_000;

export function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** A file's text and encoding. */
export interface FileText {
  /** Without the byte order mark. */
  readonly text: string;
  readonly bom: boolean;
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

export interface LineDelta {
  readonly added: number;
  readonly removed: number;
}

/** Counts added and removed lines; in very large changes, all lines between the first and last difference. */
export function lineDelta(before: string, after: string): LineDelta {
  const old = splitLines(before);
  const now = splitLines(after);
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const oldPart = old.slice(start, old.length - end);
  const newPart = now.slice(start, now.length - end);
  const coarse = { added: newPart.length, removed: oldPart.length };
  const lines = oldPart.length + newPart.length;
  if (lines > MAX_DIFF_LINES) return coarse;
  const changes = diffArrays(oldPart, newPart, {
    maxEditLength: Math.min(MAX_DIFF_LENGTH, Math.ceil(MAX_DIFF_WORK / Math.max(lines, 1))),
  });
  if (changes === undefined) return coarse;
  let added = 0;
  let removed = 0;
  for (const change of changes) {
    if (change.added) added += change.count;
    if (change.removed) removed += change.count;
  }
  return { added, removed };
}
