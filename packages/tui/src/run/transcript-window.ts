import { type ExecutionView, type RunEndItem, span, type TranscriptItem } from "@sluice/view";
import { cut, type Line, type Rows } from "@sluice/view/text";
import { endLines } from "./end-rows.ts";
import { LiveRows } from "./live-rows.ts";
import { isFoldable, knownHeight, searchable, transcriptLines } from "./transcript.ts";

/** Items whose rows are cached. */
const CACHED = 200;
/** Items of a long transcript that are shown; the first row counts the earlier ones. */
const MAX_ITEMS = 5_000;
/** Rows of the run's result. */
const MAX_END_ROWS = 2_000;

/** The rows of one execution's transcript while it grows. */
export class TranscriptWindow implements Rows {
  #key: string | undefined;
  #items: TranscriptItem[] = [];
  #settled = 0;
  #live: ExecutionView["live"];
  #liveRows: LiveRows | undefined;
  #end: { readonly item: RunEndItem; readonly width: number; readonly lines: readonly Line[] } | undefined;
  #folded = true;
  /** Items whose folding differs from the rest. */
  readonly #toggled = new Set<number>();
  #width = 0;
  /** Rows of each item at this width, as far as known. */
  #heights: (number | undefined)[] = [];
  /** The first row of each item, and of the one after the last, as far as computed. */
  #starts: number[] = [];
  /** The first item that is shown. */
  #first = 0;
  readonly #lines = new Map<number, readonly Line[]>();

  /** Takes a newer view of the execution, and the end of its run if it follows; only changes are laid out. */
  update(execution: ExecutionView, end?: RunEndItem): void {
    if (execution.key !== this.#key) this.#restart(execution.key);
    const { items, live } = execution;
    for (let index = this.#settled; index < items.length; index += 1) {
      const item = items.at(index);
      if (item === undefined || item === this.#items[index]) continue;
      this.#items[index] = item;
      this.#forget(index);
    }
    this.#settled = items.settled;
    this.#live = live;
    const last = this.#end?.item;
    const isSame = end !== undefined && last?.output === end.output && last?.error === end.error;
    if (!isSame) this.#end = end === undefined ? undefined : { item: end, width: -1, lines: [] };
  }

  count(width: number): number {
    return this.#height(width) + this.#below(width).length;
  }

  slice(from: number, to: number, width: number): readonly Line[] {
    const height = this.#height(width);
    const first = Math.max(0, from);
    const lines: Line[] = this.#first > 0 && first === 0 && to > 0 ? [cut(earlierLine(this.#first), width)] : [];
    for (let index = this.#indexAt(first); index < this.#items.length; index += 1) {
      const start = this.#startOf(index);
      if (start >= to) break;
      const own = this.#linesOf(index);
      lines.push(...own.slice(Math.max(0, first - start), Math.max(0, to - start)));
    }
    if (to > height) lines.push(...this.#below(width).slice(Math.max(0, first - height), to - height));
    return lines;
  }

  find(text: string, from: number, width: number, back: boolean): number | undefined {
    this.#height(width);
    const wanted = text.toLowerCase();
    if (wanted === "") return undefined;
    const start = Math.min(this.#indexAt(Math.max(0, from)), this.#items.length - 1);
    const step = back ? -1 : 1;
    for (let index = start; index >= this.#first && index < this.#items.length; index += step) {
      const item = this.#items[index];
      if (item === undefined || !searchable(item).toLowerCase().includes(wanted)) continue;
      const isBeyond = (row: number): boolean => (back ? row <= from : row >= from);
      const row = this.#rowWith(index, wanted, isBeyond, back);
      if (row !== undefined) return row;
      // A match in folded rows unfolds the item.
      if (!this.#isFolded(index) || !isFoldable(item)) continue;
      this.#toggle(index);
      this.#height(width);
      const shown = this.#rowWith(index, wanted, isBeyond, back);
      if (shown !== undefined) return shown;
      this.#toggle(index);
      this.#height(width);
    }
    return undefined;
  }

  #toggle(index: number): void {
    if (!this.#toggled.delete(index)) this.#toggled.add(index);
    this.#forget(index);
  }

  /** Folds or unfolds everything. */
  foldAll(folded: boolean): void {
    this.#folded = folded;
    this.#toggled.clear();
    this.#forgetAll();
  }

  #restart(key: string): void {
    this.#key = key;
    this.#items = [];
    this.#settled = 0;
    this.#toggled.clear();
    this.#forgetAll();
  }

  /** Rows of all items; lays out items of unknown height. */
  #height(width: number): number {
    if (width !== this.#width) this.#forgetAll();
    this.#width = width;
    if (this.#starts.length === 0) this.#starts.push(this.#first > 0 ? 1 : 0);
    for (let index = this.#first + this.#starts.length - 1; index < this.#items.length; index += 1) {
      const rows = this.#heights[index] ?? this.#rowsIn(index);
      this.#heights[index] = rows;
      this.#starts.push(this.#startOf(index) + rows);
    }
    return this.#startOf(this.#items.length);
  }

  #startOf(index: number): number {
    return this.#starts[index - this.#first] ?? 0;
  }

  #rowsIn(index: number): number {
    const item = this.#items[index];
    const height = item === undefined ? 0 : knownHeight(item, this.#isFolded(index));
    return height ?? this.#linesOf(index).length;
  }

  #linesOf(index: number): readonly Line[] {
    const cached = this.#lines.get(index);
    if (cached !== undefined) return cached;
    const item = this.#items[index];
    const lines =
      item === undefined ? [] : transcriptLines(item, { width: this.#width, folded: this.#isFolded(index) });
    const [oldest] = this.#lines.keys();
    if (this.#lines.size >= CACHED && oldest !== undefined) this.#lines.delete(oldest);
    this.#lines.set(index, lines);
    return lines;
  }

  /** The rows below the items: streaming text, or the end of the run. */
  #below(width: number): readonly Line[] {
    if (this.#live === undefined) return this.#endLines(width);
    this.#height(width);
    this.#liveRows ??= new LiveRows(width);
    const lines = this.#liveRows.lines(this.#live);
    return lines.length === 0 ? lines : [[], ...lines];
  }

  #endLines(width: number): readonly Line[] {
    if (this.#end === undefined) return [];
    const { item } = this.#end;
    if (this.#end.width !== width)
      this.#end = {
        item,
        width,
        lines: endLines(item, width, { most: MAX_END_ROWS, rest: "sluice show has all of it" }),
      };
    return this.#end.lines;
  }

  #isFolded(index: number): boolean {
    return this.#toggled.has(index) ? !this.#folded : this.#folded;
  }

  /** The item of a row, by binary search; the number of items for a row after them. */
  #indexAt(row: number): number {
    let [low, high] = [this.#first, this.#items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#startOf(middle + 1) <= row) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #rowWith(index: number, wanted: string, isBeyond: (row: number) => boolean, back: boolean): number | undefined {
    const start = this.#startOf(index);
    const rows = this.#linesOf(index).flatMap((line, offset) => {
      const text = line.map((part) => part.text).join("");
      return isBeyond(start + offset) && text.toLowerCase().includes(wanted) ? [start + offset] : [];
    });
    return back ? rows.at(-1) : rows[0];
  }

  #forget(index: number): void {
    this.#lines.delete(index);
    if (index < this.#first) return;
    this.#heights[index] = undefined;
    this.#starts.length = Math.min(this.#starts.length, index - this.#first + 1);
  }

  #forgetAll(): void {
    this.#lines.clear();
    this.#heights = [];
    this.#starts = [];
    this.#liveRows = undefined;
    this.#first = Math.max(0, this.#items.length - MAX_ITEMS);
  }
}

function earlierLine(count: number): Line {
  return [span(`… ${count} earlier items; an export has them`, "dim")];
}
