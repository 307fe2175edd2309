// What code imports, found in its text without running it.

/** A type-only import or export, which is not loaded. Its length is limited, so that no text takes long to search. */
const TYPES_ONLY = /\b(?:import|export)\s+type\s+(?!from\b)[\w${*][^;"'`]{0,2000}?\bfrom\s*(["'])[^"'\n]*\1/g;
/** The name in `from "…"`, `import "…"`, `import("…")`, `require("…")`, `resolve("…")` and `register("…")`. */
const SPECIFIERS =
  /\b(?:from|import)\s*(["'])(?<stated>[^"'\n]+)\1|\b(?<by>import|require|resolve|register)\s*\(\s*(["'`])(?<called>[^"'`$\n]+)\4/g;

/** The name in a `new URL("…", …)` that is relative to the code, by which workers are started. */
const ADDRESSES = /\bnew\s+URL\s*\(\s*(["'`])(?<address>[^"'`$\n]+)\1\s*,\s*import\s*\.\s*meta\s*\.\s*url\b/g;

/** The names in imports, without those of types only. */
export function specifiersIn(text: string): ReadonlySet<string> {
  const loaded = text.replaceAll(TYPES_ONLY, "");
  return new Set([...loaded.matchAll(SPECIFIERS)].map(({ groups }) => groups?.stated ?? groups?.called ?? ""));
}

/** The same without `resolve("…")`, which other code has too. */
export function importsIn(text: string): ReadonlySet<string> {
  const loaded = text.replaceAll(TYPES_ONLY, "");
  const found = [...loaded.matchAll(SPECIFIERS)].filter(({ groups }) => groups?.by !== "resolve");
  return new Set(found.map(({ groups }) => groups?.stated ?? groups?.called ?? ""));
}

/** Names of files that are relative to the code's own. */
export function addressesIn(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(ADDRESSES)].map(({ groups }) => groups?.address ?? ""));
}
