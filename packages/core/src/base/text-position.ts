/** A position in a text, both from 1; columns count UTF-16 code units. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** The position of an offset. */
export function positionAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: offset - lineStart + 1 };
}

/** Where a text stops being the beginning of JSON, which the engine's own message often leaves out. Undefined if it is JSON. */
export function jsonFaultPosition(text: string): TextPosition | undefined {
  if (isPrefix(text) === "whole") return undefined;
  // The longest beginning that could still become JSON ends where the fault is.
  let [good, bad] = [0, text.length + 1];
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (isPrefix(text.slice(0, middle)) === false) bad = middle;
    else good = middle;
  }
  return positionAt(text, Math.min(good, text.length));
}

const CUT = /unterminated|unexpected end|(?:exponent|fractional) part is missing|no number after minus/i;

/** Whether a text is JSON, or could become JSON with more text behind it. */
function isPrefix(text: string): "whole" | boolean {
  try {
    JSON.parse(text);
    return "whole";
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : "";
    if (CUT.test(message)) return true;
    const at = /at position (\d+)/.exec(message)?.[1];
    return at !== undefined && Number(at) >= text.length;
  }
}
