import { type Json, textField } from "../../base/json.ts";
import type { ExecutedCall } from "./execute-tool-call.ts";

/**
 * Cuts results that go beyond the bytes that a state's results may have together. `used` bytes were used before. What was cut stays
 * in `full`. The note about the cut does not count, so that there is always room for it.
 */
export function withinResultLimit(results: readonly ExecutedCall[], limit: number, used: number): ExecutedCall[] {
  let left = Math.max(0, limit - used);
  return results.map((result) => {
    const text = textOf(result.output);
    const bytes = Buffer.byteLength(text) + fileBytes(result.files);
    if (bytes <= left) {
      left -= bytes;
      return { ...result, bytes };
    }
    const { output, full = output, files: _withoutFiles, ...others } = result;
    // All that was left counts: a later result must not fill what a cut before a character left.
    const kept = { ...others, output: cut(output, text, left, limit), full, bytes: left };
    left = 0;
    return kept;
  });
}

function cut(output: Json, text: string, left: number, limit: number): Json {
  const code = codeOf(output);
  const shown = code === undefined ? firstBytes(text, left) : "";
  const note = `[This result was cut: the results of this stage may have ${limit} bytes together. Of ${Buffer.byteLength(text)} bytes, ${Buffer.byteLength(shown)} are shown.]`;
  if (code !== undefined) return { code, message: note };
  return shown === "" ? note : `${shown}\n${note}`;
}

export function bytesOf({ output, files }: Pick<ExecutedCall, "output" | "files">): number {
  return Buffer.byteLength(textOf(output)) + fileBytes(files);
}

function fileBytes(files: ExecutedCall["files"] = []): number {
  return files.reduce((sum, { data }) => sum + Math.floor((data.length * 3) / 4), 0);
}

function textOf(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

/** The code of a typed error, which says more than its first bytes. */
function codeOf(output: Json): string | undefined {
  const code = textField(output, "code");
  return code !== undefined && /^[a-z_]{1,64}$/.test(code) ? code : undefined;
}

/** As many whole characters as fit. */
function firstBytes(text: string, most: number): string {
  // With `stream`, a character that is cut off is left out.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, most), { stream: true });
}
