/** An immutable snapshot of a list that only grows; taking one costs nothing. */
export interface AppendOnlyList<T> extends Iterable<T> {
  readonly length: number;
  /** Items before this index are the same in every later snapshot. */
  readonly settled: number;
  at(index: number): T | undefined;
}

/** Final items are shared by all snapshots; the few that can still change are copied into each. */
export class ListBuilder<T> {
  readonly #settled: T[] = [];
  #open: T[] = [];
  #view: AppendOnlyList<T> | undefined;

  get length(): number {
    return this.#settled.length + this.#open.length;
  }

  at(index: number): T | undefined {
    const open = index - this.#settled.length;
    return open < 0 ? this.#settled[index] : this.#open[open];
  }

  push(item: T): void {
    this.#open.push(item);
    this.#view = undefined;
  }

  /** Ignores settled items. */
  replace(index: number, item: T): void {
    const open = index - this.#settled.length;
    if (open < 0 || open >= this.#open.length) return;
    this.#open[open] = item;
    this.#view = undefined;
  }

  /** Settles final items up to the first that is not, and returns them. */
  settle(isFinal: (item: T) => boolean): readonly T[] {
    const first = this.#open.findIndex((item) => !isFinal(item));
    const settled = first === -1 ? this.#open : this.#open.slice(0, first);
    if (settled.length === 0) return [];
    for (const item of settled) this.#settled.push(item);
    this.#open = this.#open.slice(settled.length);
    this.#view = undefined;
    return settled;
  }

  view(): AppendOnlyList<T> {
    this.#view ??= snapshotOf(this.#settled, this.#open.slice());
    return this.#view;
  }
}

/** `shared` may grow later: only its present length counts. */
function snapshotOf<T>(shared: readonly T[], open: readonly T[]): AppendOnlyList<T> {
  const settled = shared.length;
  return {
    length: settled + open.length,
    settled,
    at: (index) => (index < settled ? shared[index] : open[index - settled]),
    *[Symbol.iterator]() {
      for (let index = 0; index < settled; index += 1) {
        const item = shared[index];
        if (item !== undefined) yield item;
      }
      yield* open;
    },
  };
}
