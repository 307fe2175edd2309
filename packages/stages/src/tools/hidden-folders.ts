import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { readSmallFile } from "./gitignore.ts";
import { compileGlob } from "./glob-match.ts";

/** Files whose rules ripgrep puts above those of git, and by which it also looks into what is hidden. */
const RULE_FILES = [".ignore", ".rgignore"];

/** Whether ripgrep may look into a hidden folder (by the names that lead there), since a glob or a rule around it wants that. */
export function mayShowHidden(names: readonly string[], globs: readonly string[], folder: string): boolean {
  return globs.some((glob) => mayMatchOn(glob, names)) || rulesMayShow(folder);
}

/** Read with great care: what the matcher here and that of ripgrep might take differently may match. */
function mayMatchOn(glob: string, names: readonly string[]): boolean {
  if (/[[\\]|\{[^{},]*\}|\{[^}]*\{/.test(glob)) return true;
  const verdict = compileGlob(glob.replace(/\/+$/, "").toLowerCase());
  if (!verdict.ok) return true;
  const lower = names.map((name) => name.toLowerCase());
  // Where a glob begins is not said by where it stands: any run of names on the way there counts.
  return lower.some((_, end) => lower.some((_, start) => start <= end && verdict.match(lower.slice(start, end + 1))));
}

function rulesMayShow(folder: string): boolean {
  for (let place = folder; ; place = dirname(place)) {
    if (RULE_FILES.some((name) => mayWant(join(place, name)))) return true;
    if (dirname(place) === place) return false;
  }
}

/** A file that is no small plain one may say anything. */
function mayWant(file: string): boolean {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return false;
  const text = readSmallFile(file);
  return text === undefined || /^\uFEFF?!/m.test(text);
}
