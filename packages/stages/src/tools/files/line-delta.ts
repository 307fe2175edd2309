import { diffArrays } from "diff/lib/diff/array.js";
import { splitLines } from "./text.ts";

/** Changed lines beyond which the exact difference is not computed. */
const MAX_DIFF_LENGTH = 1_000;
/** Lines times changed lines to compare; bounds the work, since the difference is only a remark. */
const MAX_DIFF_WORK = 4_000_000;
/** Lines beyond which even a small difference is not computed. */
const MAX_DIFF_LINES = 100_000;

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
