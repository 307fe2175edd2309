import { REDACTION_MARKER } from "@sluice/core";

/** Takes secrets out of what is only shown because a change is next to it. */
export interface Hiding {
  /** Those that are known, and what looks like one. */
  text(text: string): string;
  /** Those that are known: no model can have put them into what it proposes. */
  known(text: string): string;
}

export const HIDES_NOTHING: Hiding = { text: (text) => text, known: (text) => text };

const KEY_BEGINS = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
const KEY_ENDS = /-----END [A-Z ]*PRIVATE KEY-----/;

/** How the lines of a file are shown around a change: a block that is a key is one in each of its lines. */
export function shownLines(lines: readonly string[], hiding: Hiding): (at: number) => string {
  const inKey = new Set<number>();
  if (hiding !== HIDES_NOTHING) {
    let inside = false;
    for (const [at, line] of lines.entries()) {
      if (KEY_BEGINS.test(line)) inside = true;
      if (inside) inKey.add(at);
      if (KEY_ENDS.test(line)) inside = false;
    }
  }
  return (at) => (inKey.has(at) ? `${REDACTION_MARKER}private-key]` : hiding.text(lines[at] ?? ""));
}
