import { type ExecutionView, type RunEndItem, span, type TranscriptItem } from "@sluice/view";
import { cut, type Line, type Rows } from "@sluice/view/text";
import { endLines } from "./end-rows.ts";
import { LiveRows } from "./live-rows.ts";
import { isFoldable, knownHeight, searchable, transcriptLines } from "./transcript.ts";

/** The transcript of one execution, as rows to look through while it grows. */
export interface TranscriptWindow extends Rows {
  /** Takes the execution as a new view has it, and the end of its run where that stands below it. Costs what changed since. */
  update(execution: ExecutionView, end?: RunEndItem): void;
  find(text: string, from: number, width: number, back: boolean): number | undefined;
  /** The item a row belongs to; undefined for what streams, and outside. */
  itemAt(row: number, width: number): number | undefined;
  /** The first row of an item. */
  rowOf(item: number, width: number): number;
  /** Shows the whole of an item, or its beginning again. False where there is nothing to fold. */
  toggle(item: number): boolean;
  /** Folds or unfolds everything. */
  foldAll(folded: boolean): void;
}

/** Items whose rows are kept, so that what is looked at is not laid out again with every frame. */
const KEPT = 200;
/** Items of a long transcript that are looked through; what stands before them is counted in the first row. */
const MOST_ITEMS = 5_000;
/** Rows of how its run ended. */
const MOST_END_ROWS = 2_000;

export function createTranscriptWindow(execution?: ExecutionView): TranscriptWindow {
  const window = new Window();
  if (execution !== undefined) window.update(execution);
  return window;
}

class Window implements TranscriptWindow {
  #key: string | undefined;
  #items: TranscriptItem[] = [];
  #settled = 0;
  #live: ExecutionView["live"];
  #liveRows: LiveRows | undefined;
  #end: { readonly item: RunEndItem; readonly width: number; readonly lines: readonly Line[] } | undefined;
  #folded = true;
  /** Items that are shown the other way round. */
  readonly #turned = new Set<number>();
  #width = 0;
  /** Rows of each item at this width; of those without, it is not known. */
  #heights: (number | undefined)[] = [];
  /** The first row of items as far as all heights before are added up, and of the one after them. */
  #starts: number[] = [];
  /** The first item that is looked through. */
  #first = 0;
  readonly #lines = new Map<number, readonly Line[]>();

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
    const known = this.#end?.item;
    const same = end !== undefined && known?.output === end.output && known?.error === end.error;
    if (!same) this.#end = end === undefined ? undefined : { item: end, width: -1, lines: [] };
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
      // What is folded away is shown when it is what was looked for.
      if (!this.#isFolded(index) || !isFoldable(item)) continue;
      this.toggle(index);
      this.#height(width);
      const shown = this.#rowWith(index, wanted, isBeyond, back);
      if (shown !== undefined) return shown;
      this.toggle(index);
      this.#height(width);
    }
    return undefined;
  }

  itemAt(row: number, width: number): number | undefined {
    const height = this.#height(width);
    return row < 0 || row >= height ? undefined : this.#indexAt(row);
  }

  rowOf(item: number, width: number): number {
    this.#height(width);
    return this.#startOf(Math.max(this.#first, Math.min(item, this.#items.length)));
  }

  toggle(item: number): boolean {
    const there = this.#items[item];
    if (there === undefined || !isFoldable(there)) return false;
    if (!this.#turned.delete(item)) this.#turned.add(item);
    this.#forget(item);
    return true;
  }

  foldAll(folded: boolean): void {
    this.#folded = folded;
    this.#turned.clear();
    this.#forgetAll();
  }

  #restart(key: string): void {
    this.#key = key;
    this.#items = [];
    this.#settled = 0;
    this.#turned.clear();
    this.#forgetAll();
  }

  /** Rows of all items; lays out those whose height is not known. */
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
    const known = item === undefined ? 0 : knownHeight(item, this.#isFolded(index));
    return known ?? this.#linesOf(index).length;
  }

  #linesOf(index: number): readonly Line[] {
    const known = this.#lines.get(index);
    if (known !== undefined) return known;
    const item = this.#items[index];
    const lines =
      item === undefined ? [] : transcriptLines(item, { width: this.#width, folded: this.#isFolded(index) });
    const [oldest] = this.#lines.keys();
    if (this.#lines.size >= KEPT && oldest !== undefined) this.#lines.delete(oldest);
    this.#lines.set(index, lines);
    return lines;
  }

  /** What stands below its items: what streams, or how its run ended. */
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
        lines: endLines(item, width, { most: MOST_END_ROWS, rest: "sluice show has all of it" }),
      };
    return this.#end.lines;
  }

  #isFolded(index: number): boolean {
    return this.#turned.has(index) ? !this.#folded : this.#folded;
  }

  /** The item a row is in, by halving; the number of items for a row behind them. */
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
    const rows = this.#linesOf(index).flatMap((line, at) => {
      const text = line.map((part) => part.text).join("");
      return isBeyond(start + at) && text.toLowerCase().includes(wanted) ? [start + at] : [];
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
    this.#first = Math.max(0, this.#items.length - MOST_ITEMS);
  }
}

function earlierLine(count: number): Line {
  return [span(`… ${count} earlier things; an export has them`, "dim")];
}
