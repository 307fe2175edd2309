import type { Json, JsonObject } from "../base/json.ts";

/** One change of the outputs; without `output` the state has none any more. A new output of a known state keeps its place. */
export type OutputChange = { readonly state: string; readonly output?: Json };

/** So many moments are kept before their changes are merged unasked. */
const FEW = 64;

type Entries = Map<string, Json>;

/**
 * The outputs of states as of one moment of a run. Later outputs are added without copying the earlier ones; the object that
 * readers see is made when one first asks for it, and is the same for all who ask at that moment.
 */
export class Outputs {
  /** The moment before; undefined once its changes are in `#entries`, so that the past can be freed. */
  #before: Outputs | undefined;
  readonly #changes: readonly OutputChange[];
  /** The outputs by state. A moment that has its object passes them on to the next one that needs them. */
  #entries: Entries | undefined;
  #object: JsonObject | undefined;
  /** Moments since the last merge, and how many outputs there were then. */
  readonly #since: number;
  #size: number;

  private constructor(before: Outputs | undefined, changes: readonly OutputChange[], object: JsonObject | undefined) {
    this.#before = before;
    this.#changes = changes;
    this.#object = object;
    this.#since = before === undefined || before.#isMerged ? 1 : before.#since + 1;
    this.#size = before === undefined ? Object.keys(object ?? {}).length : before.#size;
  }

  static of(outputs: JsonObject): Outputs {
    return new Outputs(undefined, [], Object.freeze(outputs));
  }

  with(changes: readonly OutputChange[]): Outputs {
    if (changes.length === 0) return this;
    // Frees replaced outputs now and then; with this condition a change costs the same on average, however many outputs there are.
    if (!this.#isMerged && this.#since > Math.max(FEW, this.#size)) this.#merged();
    return new Outputs(this, changes, undefined);
  }

  /** The outputs by state, in the order of first completion. Frozen. */
  get object(): JsonObject {
    this.#object ??= frozenObject(this.#merged());
    return this.#object;
  }

  get #isMerged(): boolean {
    return this.#entries !== undefined || this.#object !== undefined;
  }

  #merged(): Entries {
    if (this.#entries !== undefined) return this.#entries;
    const later = [this.#changes];
    let from = this.#before;
    while (from !== undefined && !from.#isMerged) {
      later.push(from.#changes);
      from = from.#before;
    }
    const entries = from === undefined ? new Map<string, Json>() : from.#passOn();
    for (const changes of later.toReversed()) {
      for (const { state, output } of changes) {
        if (output === undefined) entries.delete(state);
        else entries.set(state, output);
      }
    }
    this.#entries = entries;
    this.#before = undefined;
    this.#size = entries.size;
    return entries;
  }

  /** The entries, for a later moment to change. */
  #passOn(): Entries {
    const entries = this.#entries ?? new Map(Object.entries(this.#object ?? {}));
    if (this.#object === undefined) return new Map(entries);
    this.#entries = undefined;
    return entries;
  }
}

// Contexts lead to it: what a kind put on it would hold for every run of the process.
for (const shared of [Outputs, Outputs.prototype]) Object.freeze(shared);

/**
 * A plain object without a prototype until it is full: V8 keeps such an object as a hash table from the start. Others are converted
 * on the way, and a spread sorts the members, which makes a copy of a thousand outputs cost eight times as much.
 */
function frozenObject(entries: Entries): JsonObject {
  const object: Record<string, Json> = Object.create(null);
  for (const [state, output] of entries) object[state] = output;
  return Object.freeze(Object.setPrototypeOf(object, Object.prototype));
}
