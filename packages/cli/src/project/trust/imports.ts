import { existsSync, readFileSync, statSync } from "node:fs";
import { extname } from "node:path";
import { CODE_EXTENSIONS, type CodeDigests } from "../code.ts";
import { digestOf, MODULES } from "../modules.ts";

/** Files of these extensions are searched for imports. */
const READ = [...CODE_EXTENSIONS, ".cts", ".cjs"];

/** A type-only import or export, which is not loaded. Its length is limited, so that no text takes long to search. */
const TYPES_ONLY = /\b(?:import|export)\s+type\s+(?!from\b)[\w${*][^;"'`]{0,2000}?\bfrom\s*(["'])[^"'\n]*\1/g;
/** The name in `from "…"`, `import "…"`, `import("…")`, `require("…")` and `resolve("…")`. */
const SPECIFIERS =
  /\b(?:from|import)\s*(["'])(?<stated>[^"'\n]+)\1|\b(?:import|require|resolve)\s*\(\s*(["'`])(?<called>[^"'`$\n]+)\3/g;

/**
 * The files that code imports outside of installed packages, with their digests, found in its text without running it: also imports
 * that a function makes later. A name that the code computes is not found. A comment may add a file, which then counts as code.
 */
export function importedFiles(entries: Iterable<string>): CodeDigests {
  const found = new Map<string, string>();
  const waiting = [...entries];
  const seen = new Set(waiting);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const bytes = readFileSync(file);
    found.set(file, digestOf(bytes));
    if (!READ.includes(extname(file))) continue;
    for (const specifier of specifiersIn(bytes.toString("utf8"))) {
      const imported = MODULES.locate(specifier, file);
      if (imported === undefined || seen.has(imported) || !isFile(imported)) continue;
      seen.add(imported);
      waiting.push(imported);
    }
  }
  return found;
}

function specifiersIn(text: string): ReadonlySet<string> {
  const loaded = text.replaceAll(TYPES_ONLY, "");
  return new Set([...loaded.matchAll(SPECIFIERS)].map(({ groups }) => groups?.stated ?? groups?.called ?? ""));
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
