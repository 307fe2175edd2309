import { isJsonObject, type Json } from "../../base/json.ts";

/** The first place where two values are not the same; what is not there is undefined. */
export interface Difference {
  /** `$` is the whole, `$.a[0]` a place in it. */
  readonly path: string;
  readonly recorded: Json | undefined;
  readonly now: Json | undefined;
}

/** Undefined where both say the same, whatever the order of members. Places are looked at in the recorded order. */
export function firstDifference(recorded: Json | undefined, now: Json | undefined, path = "$"): Difference | undefined {
  if (Object.is(recorded, now)) return undefined;
  if (Array.isArray(recorded) && Array.isArray(now)) {
    for (let at = 0; at < Math.max(recorded.length, now.length); at += 1) {
      const found = firstDifference(recorded[at], now[at], `${path}[${at}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (isJsonObject(recorded) && isJsonObject(now)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
      const found = firstDifference(own(recorded, key), own(now, key), `${path}.${key}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return { path, recorded, now };
}

function own(value: Readonly<Record<string, Json>>, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
