import { type ExecutionView, type RunEndItem, span, type TranscriptItem } from "@sluice/view";
import { cut, type Line, type Rows } from "@sluice/view/text";
import { endLines } from "./end-rows.ts";
import { findText } from "./find-row.ts";
import { LiveRows } from "./live-rows.ts";
import { foldedHeight, isFoldable, searchable, transcriptLines } from "./transcript.ts";

/** Items of a long transcript that are shown; the first row counts the earlier ones. */
const MAX_ITEMS = 5_000;
/** Rows of the run's result. */
const MAX_END_ROWS = 2_000;

/** The rows of one execution's transcript while it grows. Only what is shown is laid out, and what has an unknown height. */
export class TranscriptWindow implements Rows {
  #key: string | undefined;
  #items: TranscriptItem[] = [];
  #settled = 0;
  #live: ExecutionView["live"];
  #liveRows: LiveRows | undefined;
  #end: RunEndItem | undefined;
  #endRows: readonly Line[] | undefined;
  /** Whether only the beginning of long items is shown. */
  #folded: boolean;
  /** Items that a search unfolded. */
  readonly #opened = new Set<number>();
  #width = 0;
  /** The first item that is shown. */
  #first = 0;
  /** The rows of each item, as far as it is laid out. */
  #lines: (readonly Line[] | undefined)[] = [];
  /** The first row of each item that is shown, and of what follows the last one, as far as computed. */
  #starts: number[] = [];

  constructor(folded = true) {
    this.#folded = folded;
  }

  /** Takes a newer view of the execution, and the end of its run if it follows; only changes are laid out. */
  update(execution: ExecutionView, end?: RunEndItem): void {
    const { key, items, live } = execution;
    const isOther = key !== this.#key;
    if (isOther) {
      this.#key = key;
      this.#items = [];
      this.#settled = 0;
      this.#opened.clear();
    }
    for (let index = this.#settled; index < items.length; index += 1) {
      const item = items.at(index);
      if (item === undefined || item === this.#items[index]) continue;
      this.#items[index] = item;
      this.#forget(index);
    }
    this.#settled = items.settled;
    this.#live = live;
    if (end?.status !== this.#end?.status || end?.output !== this.#end?.output) this.#endRows = undefined;
    this.#end = end;
    if (isOther) this.#forgetAll();
  }

  count(width: number): number {
    return this.#height(width) + this.#endAt(width).length + this.#liveAt(width).length;
  }

  slice(from: number, to: number, width: number): readonly Line[] {
    const height = this.#height(width);
    const first = Math.max(0, from);
    const lines: Line[] = [];
    if (this.#first > 0 && first === 0 && to > 0)
      lines.push(cut([span(`… ${this.#first} earlier items; an export has them`, "dim")], width));
    for (let index = this.#indexAt(first); index < this.#items.length; index += 1) {
      const start = this.#startOf(index);
      if (start >= to) break;
      lines.push(...this.#linesOf(index).slice(Math.max(0, first - start), to - start));
    }
    const below = to > height ? [...this.#endAt(width), ...this.#liveAt(width)] : [];
    return [...lines, ...below.slice(Math.max(0, first - height), Math.max(0, to - height))];
  }

  /** A match that only folded rows of an item contain unfolds that item. */
  find(text: string, from: number, width: number, back: boolean): number | undefined {
    if (text === "") return undefined;
    const height = this.#height(width);
    const inEnd = findText(this.#endAt(width), text, from - height, back);
    if (back && inEnd !== undefined) return height + inEnd;
    // After rows below the items, none of the items follows.
    const row = from > height && !back ? undefined : this.#findItem(text, from, back);
    return row ?? (inEnd === undefined ? undefined : height + inEnd);
  }

  /** Folds or unfolds everything. */
  foldAll(folded: boolean): void {
    this.#folded = folded;
    this.#opened.clear();
    this.#forgetAll();
  }

  #findItem(text: string, from: number, back: boolean): number | undefined {
    const wanted = text.toLowerCase();
    const step = back ? -1 : 1;
    const nearest = Math.min(this.#indexAt(from), this.#items.length - 1);
    for (let index = nearest; index >= this.#first && index < this.#items.length; index += step) {
      const item = this.#items[index];
      if (item === undefined || !searchable(item).toLowerCase().includes(wanted)) continue;
      const start = this.#startOf(index);
      const rows = this.#linesOf(index);
      // All rows of an item that ends before `from` are before it, also those that are folded.
      const limit = back && start + rows.length <= from + 1 ? Number.POSITIVE_INFINITY : from - start;
      let row = findText(rows, text, limit, back);
      if (row === undefined && this.#isFolded(index) && isFoldable(item)) {
        row = findText(transcriptLines(item, { width: this.#width, folded: false }), text, limit, back);
        if (row !== undefined) {
          this.#opened.add(index);
          this.#forget(index);
        }
      }
      if (row !== undefined) return start + row;
    }
    return undefined;
  }

  #isFolded(index: number): boolean {
    return this.#folded && !this.#opened.has(index);
  }

  /** The row after all items. */
  #height(width: number): number {
    if (width !== this.#width) this.#forgetAll();
    this.#width = width;
    if (this.#starts.length === 0) this.#starts.push(this.#first > 0 ? 1 : 0);
    for (let index = this.#first + this.#starts.length - 1; index < this.#items.length; index += 1)
      this.#starts.push(this.#startOf(index) + this.#heightOf(index));
    return this.#startOf(this.#items.length);
  }

  #heightOf(index: number): number {
    const item = this.#items[index];
    const known = item !== undefined && this.#isFolded(index) ? foldedHeight(item) : undefined;
    return known ?? this.#linesOf(index).length;
  }

  #linesOf(index: number): readonly Line[] {
    const item = this.#items[index];
    if (item === undefined) return [];
    const lines = this.#lines[index] ?? transcriptLines(item, { width: this.#width, folded: this.#isFolded(index) });
    this.#lines[index] = lines;
    return lines;
  }

  #startOf(index: number): number {
    return this.#starts[index - this.#first] ?? 0;
  }

  /** The item of a row; the number of items for a row after them. */
  #indexAt(row: number): number {
    return (
      this.#first +
      Math.max(
        0,
        this.#starts.findLastIndex((start) => start <= row),
      )
    );
  }

  #endAt(width: number): readonly Line[] {
    if (this.#end === undefined) return [];
    this.#endRows ??= endLines(this.#end, width, END_ROOM);
    return this.#endRows;
  }

  /** The rows of streaming text, which are below all others. */
  #liveAt(width: number): readonly Line[] {
    if (this.#live === undefined) return [];
    this.#liveRows ??= new LiveRows(width);
    const lines = this.#liveRows.lines(this.#live);
    return lines.length === 0 ? lines : [[], ...lines];
  }

  #forget(index: number): void {
    this.#lines[index] = undefined;
    this.#starts.length = Math.min(this.#starts.length, Math.max(0, index - this.#first) + 1);
  }

  #forgetAll(): void {
    this.#lines = [];
    this.#starts = [];
    this.#endRows = undefined;
    this.#liveRows = undefined;
    this.#first = Math.max(0, this.#items.length - MAX_ITEMS);
  }
}

const END_ROOM = { most: MAX_END_ROWS, rest: "sluice show has all of it" };
