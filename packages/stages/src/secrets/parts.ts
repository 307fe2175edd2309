// The parts of a secret with several: a PEM file, a JSON key, a connection string.

import { isKeySetting, isKeyWord, looksLikeKey } from "./key-names.ts";

/** Shorter lines are found only with the rest of their secret. */
const SHORTEST_LINE = 16;
/** Shorter words of other lines are found only with the rest of their secret: they may be names that other files use. */
const SHORTEST_WORD = 32;
const ADDRESS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'\\]+/gi;
/** A name with its value, in JSON, YAML, connection strings and files of variables. */
const NAMED = /(?<![\w.-])([\w.-]+)\\?["']?\s?[:=]\s?\\?["']?([^\s"',;\\}]+)/g;
/** A pair of a connection string: names that only such pairs have, so that any variable may be searched for them. */
const PAIR =
  /(?:^|[;\s])\s?(?:(?:account|access|sharedaccess|api|secret)_?key|password|pwd|sharedaccesssignature|secret)\s?=\s?([^;\s]+)/gi;

/**
 * The lines of a secret such as a PEM file, for where each has its number before it or only some are shown; of lines with blanks
 * and of JSON, the values with names of keys and the words that look like keys. In variables, `\n` often stands for the end of a line.
 */
export function partsOf(value: string): readonly string[] {
  if (!/[\n{]|\\n/.test(value)) return [];
  return value.split(/\r?\n|(?:\\r)?\\n/).flatMap((line) => {
    const text = line.trim();
    if (/[\s{}"]/.test(text)) return keysIn(text);
    return text.length >= SHORTEST_LINE ? [text] : [];
  });
}

function keysIn(line: string): readonly string[] {
  const own = line.replaceAll(ADDRESS, " ");
  const named = [...own.matchAll(NAMED)].filter(
    ([, name = "", value = ""]) => isKeySetting(name) && looksLikeKey(value),
  );
  const words = own.split(/[^\w+/=-]+/).filter((word) => word.length >= SHORTEST_WORD && isKeyWord(word));
  return [...named.map(([, , value = ""]) => value), ...words];
}

/** The keys in a connection string, such as `AccountKey=…;`. */
export function pairedKeys(value: string): readonly string[] {
  return [...value.matchAll(PAIR)].flatMap(([, key = ""]) => (looksLikeKey(key) ? [key] : []));
}
