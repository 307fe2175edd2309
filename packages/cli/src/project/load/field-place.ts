// Where a file sets a field that is wrong. Code is not parsed here, so a name that occurs twice has no place.
import type { SourcePlace } from "@sluice/core";
import { positionAt } from "@sluice/core/runtime";
import { textOf } from "./file-text.ts";

/**
 * The place of a config's field, by the path of a problem: `prices["acme/large"].input` is in `prices`. The line is not shown: it
 * may hold a key in the place of its variable's name.
 */
export function configFieldPlace(file: string, path: string): SourcePlace | undefined {
  const place = keyPlace(file, /^[A-Za-z]+/.exec(path)?.[0]);
  return place === undefined ? undefined : { ...place, frame: "" };
}

/** The place of a pipeline's option, by the path of a problem: `initial`, `stages.plan.completionSchema`. */
export function definitionFieldPlace(file: string, path: string): SourcePlace | undefined {
  return keyPlace(file, /^(?:(?:stages|states)\.[^.]+\.)?([A-Za-z]+)$/.exec(path)?.[1]);
}

function keyPlace(file: string, key: string | undefined): SourcePlace | undefined {
  const text = key === undefined ? undefined : textOf(file);
  if (text === undefined) return undefined;
  const found = [...text.matchAll(new RegExp(`(?<=^|[\\s{,])["']?${key}["']?\\s*[:(]`, "g"))];
  const [only, ...others] = found;
  return only === undefined || others.length > 0 ? undefined : { file, ...positionAt(text, only.index) };
}
