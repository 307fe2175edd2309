import type { ReadFault } from "./fault.ts";

/** Bytes of a workflow file. */
export const MAX_BYTES = 256 * 1024;
/** Levels of lists and objects in a workflow file. */
export const MAX_DEPTH = 64;

/** Beside tabs and line ends, YAML has no control characters; in a terminal they would act. */
const CONTROL = /(?![\t\n\r])\p{Cc}/u;
/** Bidirectional marks and tag characters. In quotes, each can be written as an escape. */
const DECEPTIVE = /[\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** What the text as such has wrong: its size or its characters. */
export function textFault(text: string): ReadFault | undefined {
  const bytes = text.length > MAX_BYTES ? text.length : Buffer.byteLength(text);
  if (bytes > MAX_BYTES) return sizeFault();
  const bad = CONTROL.exec(text) ?? DECEPTIVE.exec(text);
  if (bad === null) return undefined;
  const [{ length }] = bad;
  const code = `U+${(bad[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
  const message = DECEPTIVE.test(bad[0])
    ? `The file holds ${code}, which hides or reverses text: who trusts the file would not see what models read.`
    : `The file holds the control character ${code}.`;
  return { rule: "control-character", message, suggestion: "remove it", start: bad.index, end: bad.index + length };
}

/** The fault of a file that is too large, whatever is in it. */
function sizeFault(): ReadFault {
  const message = `The file is larger than ${MAX_BYTES / 1024} KB.`;
  return { rule: "file-size", message, suggestion: "split the workflow into several files", start: 0, end: 0 };
}

/** The fault of a part that is nested too deep. */
export function depthFault(start: number, end: number): ReadFault {
  const message = `The document is nested deeper than ${MAX_DEPTH} levels.`;
  return { rule: "nesting-depth", message, suggestion: "flatten it", start, end };
}
