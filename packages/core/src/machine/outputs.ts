import type { Json, JsonObject } from "../base/json.ts";

/** One change of the outputs; without `output` the state has none any more. A new output of a known state keeps its place. */
export type OutputChange = { readonly state: string; readonly output?: Json };

/** So many moments are kept before their object is made unasked. */
const FEW = 64;

/**
 * The outputs of states as of one moment of a run. Later outputs are added without copying the earlier ones; the object that
 * readers see is made when one first asks for it, and is the same for all who ask at that moment.
 */
export class Outputs {
  /** The moment before; undefined once the object is made, so that the past can be freed. */
  #before: Outputs | undefined;
  readonly #changes: readonly OutputChange[];
  #object: JsonObject | undefined;
  /** Moments since the last object, and how many outputs that object had. */
  readonly #since: number;
  #size: number;

  private constructor(before: Outputs | undefined, changes: readonly OutputChange[], object: JsonObject | undefined) {
    this.#before = before;
    this.#changes = changes;
    this.#object = object;
    this.#since = before === undefined || before.#object !== undefined ? 1 : before.#since + 1;
    this.#size = before === undefined ? Object.keys(object ?? {}).length : before.#size;
  }

  static of(outputs: JsonObject): Outputs {
    return new Outputs(undefined, [], Object.freeze(outputs));
  }

  with(changes: readonly OutputChange[]): Outputs {
    if (changes.length === 0) return this;
    // Frees replaced outputs now and then; with this condition a change costs the same on average, however many outputs there are.
    if (this.#object === undefined && this.#since > Math.max(FEW, this.#size)) this.#make();
    return new Outputs(this, changes, undefined);
  }

  /** The outputs by state, in the order of first completion. Frozen. */
  get object(): JsonObject {
    return this.#object ?? this.#make();
  }

  #make(): JsonObject {
    const later = [this.#changes];
    let from = this.#before;
    while (from !== undefined && from.#object === undefined) {
      later.push(from.#changes);
      from = from.#before;
    }
    const object: Record<string, Json> = { ...(from === undefined ? {} : from.#object) };
    for (const changes of later.toReversed()) {
      for (const { state, output } of changes) {
        if (output === undefined) delete object[state];
        else object[state] = output;
      }
    }
    this.#object = Object.freeze(object);
    this.#before = undefined;
    this.#size = Object.keys(object).length;
    return this.#object;
  }
}
