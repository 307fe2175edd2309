import type { Json } from "@sluice/core";
import { headOf, revealed } from "./clean.ts";
import { moreCharacters } from "./fold.ts";
import type { Line } from "./line.ts";
import { wrap } from "./width.ts";

/** UTF-16 units shown of one string. */
const LONGEST_STRING = 2_000;
const MOST_LINES = 200;

/**
 * JSON in rows of at most `width` columns: object members without braces, invisible characters marked. Values beyond `maxLines`
 * rows are not read.
 */
export function jsonRows(value: Json, width: number, maxLines = MOST_LINES): readonly Line[] {
  const rows: Line[] = [];
  for (const line of isTree(value) ? members(value, "") : [scalar(value)]) {
    rows.push(...wrap(line, width));
    if (rows.length > maxLines) break;
  }
  if (rows.length <= maxLines) return rows;
  return [...rows.slice(0, Math.max(0, maxLines - 1)), [{ text: "… more", style: "dim" }]];
}

type Tree = readonly Json[] | { readonly [key: string]: Json };

function isTree(value: Json): value is Tree {
  return typeof value === "object" && value !== null;
}

function* members(tree: Tree, indent: string): Generator<Line> {
  for (const [key, value] of Object.entries<Json>(tree)) {
    const name = Array.isArray(tree) ? "- " : `${headOf(key, LONGEST_STRING)}: `;
    const head: Line = [{ text: indent }, ...revealed(name, "dim")];
    if (!isTree(value)) yield [...head, ...scalar(value)];
    else if (Object.keys(value).length === 0) yield [...head, { text: Array.isArray(value) ? "[]" : "{}" }];
    else {
      yield head;
      yield* members(value, `${indent}  `);
    }
  }
}

function scalar(value: Exclude<Json, Tree>): Line {
  if (typeof value !== "string") return [{ text: String(value), style: "accent" }];
  const shown = headOf(value, LONGEST_STRING);
  return [...revealed(JSON.stringify(shown)), ...moreCharacters(value.length - shown.length)];
}
