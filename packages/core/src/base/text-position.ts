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

/** The engine's message about a fault, without its position and the text around it. */
export function jsonFaultText(fault: string): string {
  return fault.replace(/^(Unexpected token '.+?'), .*$/su, "$1").replace(/ in JSON(?: at position.*)?$/su, "");
}

const CUT = /unterminated string|unexpected end/i;

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
