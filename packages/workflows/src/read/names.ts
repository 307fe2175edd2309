import { idFault } from "@sluice/core/runtime";

/**
 * An id for each name, for use inside a pipeline: the name itself where it is one, else its letters and digits, with a number
 * where two would be the same. The same names in the same order get the same ids.
 */
export function idsFor(names: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...names];
  const ids = new Map<string, string>();
  const used = new Set<string>();
  for (const name of all) {
    if (idFault(name) !== undefined) continue;
    ids.set(name, name);
    used.add(name);
  }
  for (const name of all) {
    if (ids.has(name)) continue;
    const id = freeId(name, used);
    ids.set(name, id);
    used.add(id);
  }
  return ids;
}

/** An id for each workflow by what a document writes for it: a name, or of a path the file's name where no other has it. */
export function workflowIdsFor(written: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...written];
  const stems = new Map(all.map((name) => [name, /([^/]+?)(?:\.json|\.ya?ml)?\/*$/u.exec(name)?.[1] ?? name]));
  const named = Map.groupBy(all, (name) => stems.get(name) ?? name);
  const nameOf = (name: string): string => {
    const stem = stems.get(name) ?? name;
    return named.get(stem)?.length === 1 ? stem : name;
  };
  const ids = idsFor(all.map(nameOf));
  return new Map(all.map((name) => [name, ids.get(nameOf(name)) ?? name]));
}

/** The id of one name. */
export function idFor(name: string): string {
  return idsFor([name]).get(name) ?? name;
}

function freeId(name: string, used: ReadonlySet<string>): string {
  const letters = name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^A-Za-z0-9_-]+/gu, "-")
    .replaceAll(/^[^A-Za-z]+|-+$/gu, "")
    .slice(0, 56);
  const base = letters === "" ? "state" : letters;
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? base : `${base}-${number}`;
    if (!used.has(id) && idFault(id) === undefined) return id;
  }
}
