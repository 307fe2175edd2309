/** A list that grows at its end, as one view of a run sees it: it never changes, and to take it costs nothing. */
export interface AppendOnlyList<T> extends Iterable<T> {
  readonly length: number;
  /** What stands before this index is the same in every later view. */
  readonly settled: number;
  at(index: number): T | undefined;
}

const NOTHING: AppendOnlyList<never> = {
  length: 0,
  settled: 0,
  at: () => undefined,
  [Symbol.iterator]: () => [].values(),
};

export function emptyList(): AppendOnlyList<never> {
  return NOTHING;
}

/** Items that are final are shared by all views; the few that can still change are copied into each. */
export class ListBuilder<T> {
  readonly #done: T[] = [];
  #open: T[] = [];
  #view: AppendOnlyList<T> | undefined;

  get length(): number {
    return this.#done.length + this.#open.length;
  }

  at(index: number): T | undefined {
    return at(this.#done, this.#done.length, this.#open, index);
  }

  push(item: T): void {
    this.#open.push(item);
    this.#view = undefined;
  }

  /** Only for what is not settled. */
  replace(index: number, item: T): void {
    const place = index - this.#done.length;
    if (place < 0 || place >= this.#open.length) return;
    this.#open[place] = item;
    this.#view = undefined;
  }

  /** Settles what is final up to the first item that is not, and returns it. */
  settle(isFinal: (item: T) => boolean): readonly T[] {
    const first = this.#open.findIndex((item) => !isFinal(item));
    const now = first === -1 ? this.#open : this.#open.slice(0, first);
    if (now.length === 0) return [];
    for (const item of now) this.#done.push(item);
    this.#open = this.#open.slice(now.length);
    this.#view = undefined;
    return now;
  }

  view(): AppendOnlyList<T> {
    this.#view ??= new GrownView(this.#done, this.#open.slice());
    return this.#view;
  }
}

class GrownView<T> implements AppendOnlyList<T> {
  readonly length: number;
  readonly settled: number;
  readonly #done: readonly T[];
  readonly #open: readonly T[];

  constructor(done: readonly T[], open: readonly T[]) {
    this.#done = done;
    this.#open = open;
    this.settled = done.length;
    this.length = done.length + open.length;
  }

  at(index: number): T | undefined {
    return at(this.#done, this.settled, this.#open, index);
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = 0; index < this.settled; index += 1) {
      const item = this.#done[index];
      if (item !== undefined) yield item;
    }
    yield* this.#open;
  }
}

function at<T>(done: readonly T[], settled: number, open: readonly T[], index: number): T | undefined {
  return index < settled ? done[index] : open[index - settled];
}
