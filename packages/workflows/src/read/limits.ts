import type { ReadFault } from "./fault.ts";

/** Bytes of a workflow file. */
export const MAX_BYTES = 256 * 1024;
/** Levels of lists and objects in a workflow file. */
export const MAX_DEPTH = 64;

/** What the text as such has wrong: its size or its characters. */
export function textFault(text: string): ReadFault | undefined {
  const bytes = text.length > MAX_BYTES ? text.length : Buffer.byteLength(text);
  if (bytes > MAX_BYTES) return sizeFault();
  // Beside tabs and line ends, YAML has no control characters; in a terminal they would act.
  const bad = /(?![\t\n\r])\p{Cc}/u.exec(text);
  if (bad === null) return undefined;
  const code = bad[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  const message = `The file holds the control character U+${code}.`;
  return { rule: "control-character", message, suggestion: "remove it", start: bad.index, end: bad.index + 1 };
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
