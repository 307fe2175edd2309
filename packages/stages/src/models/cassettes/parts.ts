import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { word } from "../reply/provider-values.ts";
import type { Mask } from "./mask.ts";

type TimedPart = readonly [ms: number, part: Json];

/** One block of streamed text: its pieces and the indexes of its parts. */
interface Block {
  readonly type: string;
  readonly indexes: number[];
  readonly pieces: string[];
}

/**
 * Masks the parts of a response, including secrets that are split across pieces. Reasoning with a secret is dropped, as in a
 * session, because its signature covers the text.
 */
export function cleanParts(parts: readonly TimedPart[], mask: Mask): readonly TimedPart[] {
  const deltas = new Map<number, string>();
  const dropped = new Set<number>();
  const isWhole = parts.some(([, part]) => typeOf(part) === "finish");
  for (const block of blocksOf(parts)) {
    const whole = block.pieces.join("");
    if (block.type === "reasoning" && mask.holdsSecret(whole)) for (const index of block.indexes) dropped.add(index);
    const [clean, text] = [mask.pieces(block.pieces), mask.jsonText(whole)];
    // An escaped secret is found only in the whole text, which then becomes the first piece.
    const masked = clean.join("") === text ? clean : block.pieces.map((_piece, index) => (index === 0 ? text : ""));
    const pieces = isWhole ? masked : withoutEnd(masked, mask.begunSecret(text));
    const deltaIndexes = block.indexes.filter((index) => typeof deltaOf(parts[index]?.[1]) === "string");
    for (const [piece, index] of deltaIndexes.entries()) deltas.set(index, pieces[piece] ?? "");
  }
  return parts.flatMap(([ms, part], index): TimedPart[] => {
    if (dropped.has(index)) return [];
    const delta = deltas.get(index);
    const clean = cleanPart(part, mask);
    return [[ms, delta === undefined || !isJsonObject(clean) ? clean : { ...clean, delta }]];
  });
}

/** Drops characters at the end of a cut response, which may be the beginning of a secret. */
function withoutEnd(pieces: readonly string[], characters: number): readonly string[] {
  let left = pieces.join("").length - characters;
  return pieces.map((piece) => {
    const kept = piece.slice(0, Math.max(0, left));
    left -= piece.length;
    return kept;
  });
}

function cleanPart(part: Json, mask: Mask): Json {
  if (!isJsonObject(part)) return mask.json(part);
  const { input, ...others } = part;
  // The arguments of a call are JSON text.
  if (part.type !== "tool-call" || typeof input !== "string") return mask.json(part);
  const clean = mask.json(others);
  return isJsonObject(clean) ? inOrder(part, { ...clean, input: mask.jsonText(input) }) : clean;
}

/** Keeps the original order of the members, for readers of the file. */
function inOrder(original: JsonObject, clean: JsonObject): JsonObject {
  const keys = new Set([...Object.keys(original), ...Object.keys(clean)]);
  return Object.fromEntries(
    [...keys].flatMap((key) => {
      const member = field(clean, key);
      return member === undefined ? [] : [[key, member] as const];
    }),
  );
}

function blocksOf(parts: readonly TimedPart[]): readonly Block[] {
  const blocks: Block[] = [];
  const open = new Map<string, Block>();
  for (const [index, [, part]] of parts.entries()) {
    const [, type, step] = /^(text|reasoning|tool-input)-(start|delta|end)$/.exec(typeOf(part)) ?? [];
    if (type === undefined || step === undefined) continue;
    const key = JSON.stringify([type, field(part, "id")]);
    let block = step === "start" ? undefined : open.get(key);
    if (block === undefined) {
      block = { type, indexes: [], pieces: [] };
      blocks.push(block);
      open.set(key, block);
    }
    block.indexes.push(index);
    const delta = deltaOf(part);
    if (typeof delta === "string") block.pieces.push(delta);
    if (step === "end") open.delete(key);
  }
  return blocks;
}

function deltaOf(part: Json | undefined): Json | undefined {
  return part === undefined || !typeOf(part).endsWith("-delta") ? undefined : field(part, "delta");
}

function typeOf(part: Json): string {
  return word(field(part, "type"));
}
