import { diffArrays } from "diff/lib/diff/array.js";
import type { Style } from "./line.ts";

/** Maximum changed lines, and lines times changed lines, of an exact comparison. */
const MOST_EDITS = 1_000;
const MOST_WORK = 4_000_000;
/** UTF-16 units up to which the words of a line are compared. */
const LONGEST_WORDED = 1_000;
const MOST_WORD_EDITS = 100;
/** The share of two lines that must be equal for the rest to be marked. */
const ALIKE = 0.3;
/** Removed times added lines up to which all pairs are compared. */
const MOST_PAIRS = 36;

export type Kind = "same" | "removed" | "added";

/** Consecutive lines of one kind; both indexes count from 0. */
export interface Run {
  readonly kind: Kind;
  readonly count: number;
  readonly oldAt: number;
  readonly newAt: number;
}

export interface Comparison {
  readonly runs: readonly Run[];
  readonly added: number;
  readonly removed: number;
  /** False if the texts are too large or too different: then everything between the first and last difference is changed. */
  readonly exact: boolean;
}

/** The difference of two texts by lines, in bounded time. */
export function compareLines(old: readonly string[], now: readonly string[]): Comparison {
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const oldPart = old.slice(start, old.length - end);
  const newPart = now.slice(start, now.length - end);
  const maxEditLength = Math.min(MOST_EDITS, Math.floor(MOST_WORK / (oldPart.length + newPart.length + 1)));
  const changes = diffArrays(oldPart, newPart, { maxEditLength });
  const middle = changes?.map(({ added, removed, count }) =>
    run(added ? "added" : removed ? "removed" : "same", count),
  );
  const whole = middle ?? [run("removed", oldPart.length), run("added", newPart.length)];
  const runs: Run[] = [];
  const totals = { same: 0, removed: 0, added: 0 };
  for (const { kind, count } of [run("same", start), ...whole, run("same", end)]) {
    if (count === 0) continue;
    runs.push({ kind, count, oldAt: totals.same + totals.removed, newAt: totals.same + totals.added });
    totals[kind] += count;
  }
  const isOneSided = oldPart.length === 0 || newPart.length === 0;
  return { runs, added: totals.added, removed: totals.removed, exact: middle !== undefined || isOneSided };
}

function run(kind: Kind, count: number): Pick<Run, "kind" | "count"> {
  return { kind, count };
}

/** How each kind of line, and its changed words, are shown. */
export const DIFF_LOOKS = {
  same: { sign: "  ", style: "plain", word: "plain" },
  removed: { sign: "- ", style: "removed", word: "removedWord" },
  added: { sign: "+ ", style: "added", word: "addedWord" },
} as const satisfies Record<Kind, { sign: string; style: Style; word: Style }>;

/** A part of a line; `changed` if the other line lacks it. */
export interface Segment {
  readonly text: string;
  readonly changed: boolean;
}

/** The changed words of removed lines and the added lines that replace them; undefined for lines without a counterpart. */
interface WordMarks {
  old(at: number): readonly Segment[] | undefined;
  now(at: number): readonly Segment[] | undefined;
}

/** Few lines are paired by similarity; many only by position, each on demand. */
function wordMarks(old: readonly string[], now: readonly string[]): WordMarks {
  if (old.length * now.length > MOST_PAIRS) {
    const pair = (at: number): Likeness | undefined => likeness(old[at], now[at]);
    return { old: (at) => pair(at)?.old, now: (at) => pair(at)?.now };
  }
  const olds = new Map<number, readonly Segment[]>();
  const nows = new Map<number, readonly Segment[]>();
  let from = 0;
  for (const [oldAt, line] of old.entries()) {
    let best: { at: number; like: Likeness } | undefined;
    for (let at = from; at < now.length; at += 1) {
      const like = likeness(line, now[at]);
      if (like !== undefined && like.share > (best?.like.share ?? 0)) best = { at, like };
    }
    if (best === undefined) continue;
    olds.set(oldAt, best.like.old);
    nows.set(best.at, best.like.now);
    from = best.at + 1;
  }
  return { old: (at) => olds.get(at), now: (at) => nows.get(at) };
}

interface Likeness {
  readonly old: readonly Segment[];
  readonly now: readonly Segment[];
  /** The equal share of the longer line. */
  readonly share: number;
}

function likeness(old: string | undefined, now: string | undefined): Likeness | undefined {
  if (old === undefined || now === undefined) return undefined;
  const pair = old.length > LONGEST_WORDED || now.length > LONGEST_WORDED ? byEnds(old, now) : byWords(old, now);
  if (pair === undefined) return undefined;
  const same = pair.old.reduce((sum, { text, changed }) => (changed ? sum : sum + text.trim().length), 0);
  const share = same / Math.max(1, old.trim().length, now.trim().length);
  return share >= ALIKE ? { ...pair, share } : undefined;
}

function byWords(old: string, now: string): { old: readonly Segment[]; now: readonly Segment[] } | undefined {
  const changes = diffArrays(wordsOf(old), wordsOf(now), { maxEditLength: MOST_WORD_EDITS });
  if (changes === undefined) return undefined;
  const sides: { old: Segment[]; now: Segment[] } = { old: [], now: [] };
  for (const { value, added, removed } of changes) {
    const text = value.join("");
    if (!added) sides.old.push({ text, changed: removed });
    if (!removed) sides.now.push({ text, changed: added });
  }
  return sides;
}

/** For long lines: everything between the first and the last difference is changed. */
function byEnds(old: string, now: string): { old: readonly Segment[]; now: readonly Segment[] } {
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old.charCodeAt(start) === now.charCodeAt(start)) start += 1;
  if (isLowSurrogate(old, start) || isLowSurrogate(now, start)) start -= 1;
  let end = 0;
  while (end < most - start && old.charCodeAt(old.length - 1 - end) === now.charCodeAt(now.length - 1 - end)) end += 1;
  if (isLowSurrogate(old, old.length - end)) end -= 1;
  return { old: parts(old, start, end), now: parts(now, start, end) };
}

function parts(text: string, start: number, end: number): readonly Segment[] {
  const all = [
    { text: text.slice(0, start), changed: false },
    { text: text.slice(start, text.length - end), changed: true },
    { text: text.slice(text.length - end), changed: false },
  ];
  return all.filter((segment) => segment.text !== "");
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}_]+|\s+|./gsu) ?? [];
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** A line of a diff. `number` is that in its own text, from 1; `segments` are computed on demand. */
interface DiffLine {
  readonly kind: Kind;
  readonly number: number;
  readonly text: string;
  readonly segments: () => readonly Segment[];
}

export type DiffRow = { readonly kind: "gap"; readonly count: number } | DiffLine;

/** The rows of a comparison, with `context` equal lines around each change and gaps for the others. */
export function* diffRows(
  runs: readonly Run[],
  old: readonly string[],
  now: readonly string[],
  context: number,
): Generator<DiffRow> {
  let marks: WordMarks | undefined;
  for (const [index, { kind, count, oldAt, newAt }] of runs.entries()) {
    const next = runs[index + 1];
    if (kind === "same") marks = undefined;
    else if (kind === "removed" && next?.kind === "added")
      marks = wordMarks(old.slice(oldAt, oldAt + count), now.slice(next.newAt, next.newAt + next.count));
    const current = marks;
    const [lines, from] = kind === "added" ? [now, newAt] : [old, oldAt];
    const hidden = hiddenLines(runs, index, context);
    for (let at = 0; at < count; at += 1) {
      if (hidden > 0 && at === (index > 0 ? context : 0)) {
        yield { kind: "gap", count: hidden };
        at += hidden - 1;
        continue;
      }
      const marked = (): readonly Segment[] | undefined => (kind === "added" ? current?.now(at) : current?.old(at));
      const text = lines[from + at] ?? "";
      yield { kind, number: from + at + 1, text, segments: () => marked() ?? [{ text, changed: false }] };
    }
  }
}

/** The number of rows of `diffRows` without its gaps. */
export function diffRowCount(runs: readonly Run[], context: number): number {
  return runs.reduce((sum, { count }, index) => sum + count - hiddenLines(runs, index, context), 0);
}

/** Lines of an equal run that are hidden. A gap takes a row itself, so a single line is shown. */
function hiddenLines(runs: readonly Run[], index: number, context: number): number {
  const { kind, count } = runs[index] ?? { kind: "added", count: 0 };
  const shown = (index > 0 ? context : 0) + (index < runs.length - 1 ? context : 0);
  return kind === "same" && count - shown > 1 ? count - shown : 0;
}
