import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import type { Mask } from "./mask.ts";

type TimedPart = readonly [ms: number, part: Json];

/** The pieces of one block of text, with their places among the parts. */
interface Block {
  readonly type: string;
  readonly id: Json | undefined;
  readonly places: number[];
  readonly pieces: string[];
}

/**
 * The parts of an answer without secrets and places. A secret that came in several pieces is taken out of all of them;
 * reasoning that held one is left out, as the session itself does, since its signature covers the text.
 */
export function cleanParts(parts: readonly TimedPart[], mask: Mask): readonly TimedPart[] {
  const deltas = new Map<number, string>();
  const dropped = new Set<number>();
  const isWhole = parts.some(([, part]) => typeOf(part) === "finish");
  for (const block of blocksOf(parts)) {
    const whole = block.pieces.join("");
    if (block.type === "reasoning" && mask.holdsSecret(whole)) for (const place of block.places) dropped.add(place);
    const [clean, text] = [mask.pieces(block.pieces), mask.jsonText(whole)];
    // Escapes hide a secret from the search in pieces; then the text is written as one.
    const hidden = clean.join("") === text ? clean : block.pieces.map((_piece, index) => (index === 0 ? text : ""));
    const pieces = isWhole ? hidden : withoutEnd(hidden, mask.begunSecret(text));
    const ofDeltas = block.places.filter((place) => typeof deltaOf(parts[place]?.[1]) === "string");
    for (const [index, place] of ofDeltas.entries()) deltas.set(place, pieces[index] ?? "");
  }
  return parts.flatMap(([ms, part], place): TimedPart[] => {
    if (dropped.has(place)) return [];
    const delta = deltas.get(place);
    const clean = cleanPart(part, mask);
    return [[ms, delta === undefined || !isJsonObject(clean) ? clean : { ...clean, delta }]];
  });
}

/** The pieces without so many characters at the end: where an answer was cut, they may be the beginning of a secret. */
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
  // Arguments are the text of a JSON value.
  if (part.type !== "tool-call" || typeof input !== "string") return mask.json(part);
  const clean = mask.json(others);
  return isJsonObject(clean) ? inOrder(part, { ...clean, input: mask.jsonText(input) }) : clean;
}

/** Members in the order of the original, for whoever reads the file. */
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
  for (const [place, [, part]] of parts.entries()) {
    const [, type, step] = /^(text|reasoning|tool-input)-(start|delta|end)$/.exec(typeOf(part)) ?? [];
    if (type === undefined || step === undefined) continue;
    const id = field(part, "id");
    const key = JSON.stringify([type, id]);
    let block = step === "start" ? undefined : open.get(key);
    if (block === undefined) {
      block = { type, id, places: [], pieces: [] };
      blocks.push(block);
      open.set(key, block);
    }
    block.places.push(place);
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
  const type = field(part, "type");
  return typeof type === "string" ? type : "";
}
