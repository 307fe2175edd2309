import { messageOf, SluiceError } from "../../base/errors.ts";
import { isJson } from "../../base/json.ts";

/** A value as the journal keeps it, and as the program sees it: now what it will be on replay. */
export interface Recorded<T> {
  readonly text: string;
  readonly value: T;
}

/** Whatever JSON does to a value (a date becomes a text, an undefined member goes) is done before the program sees it. */
export function recorded<T>(value: T, what: string): Recorded<T> {
  const text = jsonText(value, what);
  // Most values are plain JSON, come back as they are, and need not be read back.
  return { text, value: isJson(value) ? value : JSON.parse(text) };
}

/** The JSON text of a value. Throws SluiceError `not_json` for what has none. */
export function jsonText(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new SluiceError("Validation", "not_json", `${what} is not JSON: ${messageOf(cause)}`, { cause });
  }
  if (text === undefined) {
    const mend = "use null for nothing";
    throw new SluiceError("Validation", "not_json", `${what} is ${typeof value}, which a journal cannot hold; ${mend}`);
  }
  return text;
}
