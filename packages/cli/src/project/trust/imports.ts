import { existsSync, readFileSync, statSync } from "node:fs";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { CODE_EXTENSIONS, type CodeDigests } from "../code.ts";
import { digestOf, MODULES } from "../modules.ts";
import { addressesIn, specifiersIn } from "./specifiers.ts";

/** Files of these extensions are searched for imports. */
const READ = [...CODE_EXTENSIONS, ".cts", ".cjs"];

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
    const text = bytes.toString("utf8");
    const located = [...specifiersIn(text)].map((specifier) => MODULES.locate(specifier, file));
    for (const imported of [...located, ...[...addressesIn(text)].map((address) => codeAt(address, file))]) {
      if (imported === undefined || seen.has(imported) || !isFile(imported)) continue;
      seen.add(imported);
      waiting.push(imported);
    }
  }
  return found;
}

/** The code that a relative address means, such as that of a worker; data that a run may write does not count. */
function codeAt(address: string, from: string): string | undefined {
  const { protocol, href } = URL.parse(address, pathToFileURL(from).href) ?? {};
  return protocol === "file:" && href !== undefined && READ.includes(extname(address))
    ? MODULES.locate(href, from)
    : undefined;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
