import { posix } from "node:path";
import type { SourceFile } from "./sources.ts";

/** The files of each circle of imports, in the order in which they lead back to the first. Imports of types count. */
export function circlesIn(sources: readonly Pick<SourceFile, "path" | "imports">[]): readonly (readonly string[])[] {
  const known = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter((from) => from.startsWith(".")).map((from) => posix.join(posix.dirname(path), from)),
    ]),
  );
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const from = way.indexOf(path);
    if (from >= 0) circles.push(way.slice(from));
    if (from >= 0 || done.has(path)) return;
    for (const next of known.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const path of known.keys()) visit(path, []);
  return circles;
}
