import { type ExecutionView, type RunEndItem, span, type TranscriptItem } from "@sluice/view";
import { cut, type Line, type Rows } from "@sluice/view/text";
import { endLines } from "./end-rows.ts";
import { findText } from "./find-row.ts";
import { LiveRows } from "./live-rows.ts";
import { searchable, transcriptLines } from "./transcript.ts";

/** Items of a long transcript that are shown; the first row counts the earlier ones. */
const MAX_ITEMS = 5_000;
/** Rows of the run's result. */
const MAX_END_ROWS = 2_000;

/** The rows of one execution's transcript while it grows; each item is laid out once. */
export class TranscriptWindow implements Rows {
  #key: string | undefined;
  #items: TranscriptItem[] = [];
  #settled = 0;
  #live: ExecutionView["live"];
  #liveRows: LiveRows | undefined;
  #end: RunEndItem | undefined;
  #folded = true;
  #width = 0;
  /** The first item that is shown. */
  #first = 0;
  /** The rows of each item, as far as it is laid out. */
  #lines: (readonly Line[] | undefined)[] = [];
  /** All rows but those of streaming text. */
  #rows: readonly Line[] | undefined;

  /** Whether only the beginning of long items is shown. */
  get folded(): boolean {
    return this.#folded;
  }

  /** Takes a newer view of the execution, and the end of its run if it follows; only changes are laid out. */
  update(execution: ExecutionView, end?: RunEndItem): void {
    const { key, items, live } = execution;
    const isOther = key !== this.#key;
    if (isOther) {
      this.#key = key;
      this.#items = [];
      this.#settled = 0;
    }
    for (let index = this.#settled; index < items.length; index += 1) {
      const item = items.at(index);
      if (item === undefined || item === this.#items[index]) continue;
      this.#items[index] = item;
      this.#lines[index] = undefined;
      this.#rows = undefined;
    }
    this.#settled = items.settled;
    this.#live = live;
    if (end?.status !== this.#end?.status || end?.output !== this.#end?.output) this.#rows = undefined;
    this.#end = end;
    if (isOther) this.#forget();
  }

  count(width: number): number {
    return this.#rowsAt(width).length + this.#liveAt(width).length;
  }

  slice(from: number, to: number, width: number): readonly Line[] {
    const rows = this.#rowsAt(width);
    const below = to > rows.length ? this.#liveAt(width) : [];
    const shown = rows.slice(Math.max(0, from), Math.max(0, to));
    return [...shown, ...below.slice(Math.max(0, from - rows.length), Math.max(0, to - rows.length))];
  }

  /** A match that only folded rows contain unfolds all items. */
  find(text: string, from: number, width: number, back: boolean): number | undefined {
    if (text === "") return undefined;
    const row = findText(this.#rowsAt(width), text, from, back);
    if (row !== undefined || !this.#folded || !this.#contains(text)) return row;
    const index = this.#indexAt(from);
    this.foldAll(false);
    const found = findText(this.#rowsAt(width), text, this.#startOf(back ? index + 1 : index), back);
    if (found === undefined) this.foldAll(true);
    return found;
  }

  /** Folds or unfolds everything. */
  foldAll(folded: boolean): void {
    this.#folded = folded;
    this.#forget();
  }

  #rowsAt(width: number): readonly Line[] {
    if (width !== this.#width) this.#forget();
    this.#width = width;
    this.#rows ??= [
      ...(this.#first === 0 ? [] : [cut([span(`… ${this.#first} earlier items; an export has them`, "dim")], width)]),
      ...this.#items.slice(this.#first).flatMap((item, at) => this.#linesOf(item, this.#first + at)),
      ...(this.#end === undefined ? [] : endLines(this.#end, width, END_ROOM)),
    ];
    return this.#rows;
  }

  #linesOf(item: TranscriptItem, index: number): readonly Line[] {
    const lines = this.#lines[index] ?? transcriptLines(item, { width: this.#width, folded: this.#folded });
    this.#lines[index] = lines;
    return lines;
  }

  /** The rows of streaming text, which are below all others. */
  #liveAt(width: number): readonly Line[] {
    if (this.#live === undefined) return [];
    this.#liveRows ??= new LiveRows(width);
    const lines = this.#liveRows.lines(this.#live);
    return lines.length === 0 ? lines : [[], ...lines];
  }

  #contains(text: string): boolean {
    const wanted = text.toLowerCase();
    return this.#items.some((item) => searchable(item).toLowerCase().includes(wanted));
  }

  /** The first row of an item, after all were laid out. */
  #startOf(index: number): number {
    const rows = this.#lines.slice(this.#first, index).reduce((sum, lines) => sum + (lines?.length ?? 0), 0);
    return (this.#first === 0 ? 0 : 1) + rows;
  }

  /** The item with a row, after all were laid out. */
  #indexAt(row: number): number {
    let index = this.#first;
    for (let end = this.#startOf(index); index < this.#items.length; index += 1) {
      end += this.#lines[index]?.length ?? 0;
      if (end > row) break;
    }
    return index;
  }

  #forget(): void {
    this.#lines = [];
    this.#rows = undefined;
    this.#liveRows = undefined;
    this.#first = Math.max(0, this.#items.length - MAX_ITEMS);
  }
}

const END_ROOM = { most: MAX_END_ROWS, rest: "sluice show has all of it" };
