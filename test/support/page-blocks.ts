import { createHash } from "node:crypto";
import type { Json } from "@sluice/core";
import { canonicalJson } from "@sluice/core/runtime";
import { readSource } from "../../packages/workflows/src/read/source.ts";

/** A block in braces of a page, as data. */
export interface PageBlock {
  /** Where it begins, from 1. */
  readonly line: number;
  readonly block: Json;
}

/** Every block in braces of a page's text that is data with content, in order. `{ ... }` and `{...}` stand for `{}`. */
export function blocksOf(page: string): readonly PageBlock[] {
  const found: PageBlock[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: brace, index } of page.matchAll(/[{}]/g)) {
    if (brace === "{") {
      if (depth === 0) start = index;
      depth += 1;
      continue;
    }
    depth -= 1;
    if (depth > 0) continue;
    const text = page.slice(start, index + 1).replaceAll(/\{ ?\.\.\. ?\}/g, "{}");
    const block = readSource("block.yaml", text).source?.value;
    if (block === undefined) throw new Error(`no data: ${text}`);
    if (text !== "{}") found.push({ line: page.slice(0, start).split("\n").length, block });
  }
  return found;
}

/** What the blocks of a page hold, and where, in one value. */
export function digestOf(blocks: readonly PageBlock[]): string {
  const listed = canonicalJson(blocks.map(({ line, block }) => [line, block]));
  return createHash("sha256").update(listed).digest("hex");
}
