/** The style of a scalar, as far as it matters for where its characters are. */
export type ScalarStyle = "plain" | "single" | "double" | "block";

/**
 * For each character of a scalar's value, its offset in the source text of the scalar: past quotes, escapes, folds and
 * indentation. The last entry is the offset behind the last character. Undefined if the two do not match.
 */
export function scalarOffsets(source: string, value: string, style: ScalarStyle): readonly number[] | undefined {
  return style === "block" ? blockOffsets(source, value) : flowOffsets(source, value, style);
}

/** Blocks have no escapes: the characters that are not white space are the same ones in the same order. */
function blockOffsets(source: string, value: string): readonly number[] | undefined {
  const offsets: number[] = [];
  // The header line holds the indicator, and perhaps a comment.
  let at = source.indexOf("\n") + 1;
  for (const character of splitUnits(value)) {
    if (/\s/u.test(character)) {
      offsets.push(Math.min(at, source.length));
      if (source[at] === character) at += 1;
      continue;
    }
    while (at < source.length && source[at] !== character) {
      if (!/\s/u.test(source[at] ?? "")) return undefined;
      at += 1;
    }
    if (at >= source.length) return undefined;
    offsets.push(at);
    at += 1;
  }
  return [...offsets, at];
}

/** Reads a plain or quoted scalar as YAML does, remembering where each character came from. */
function flowOffsets(
  source: string,
  value: string,
  style: "plain" | "single" | "double",
): readonly number[] | undefined {
  const end = style === "plain" ? source.length : source.length - 1;
  const offsets: number[] = [];
  let read = "";
  let at = style === "plain" ? 0 : 1;
  const emit = (text: string, from: number): void => {
    read += text;
    for (let count = 0; count < text.length; count += 1) offsets.push(from);
  };
  while (at < end) {
    const fold = foldAt(source, at);
    if (fold !== undefined) {
      emit(fold.breaks === 1 ? " " : "\n".repeat(fold.breaks - 1), at);
      at += fold.length;
      continue;
    }
    const unit = style === "plain" ? undefined : quotedUnit(source, at, style);
    emit(unit?.text ?? source[at] ?? "", at);
    at += unit?.length ?? 1;
  }
  return read === value ? [...offsets, end] : undefined;
}

/** White space around one or more line breaks, which reads as one space or as the breaks after the first. */
function foldAt(source: string, at: number): { readonly length: number; readonly breaks: number } | undefined {
  const fold = /[ \t]*(?:\r?\n[ \t]*)+/uy;
  fold.lastIndex = at;
  const [found] = fold.exec(source) ?? [];
  return found === undefined ? undefined : { length: found.length, breaks: found.split("\n").length - 1 };
}

interface Unit {
  readonly text: string;
  readonly length: number;
}

const ESCAPES: Readonly<Record<string, string>> = {
  0: "\0",
  a: "\x07",
  b: "\b",
  e: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  N: "\u0085",
  _: "\u00a0",
  L: "\u2028",
  P: "\u2029",
};

/** What is written differently from what it means. */
function quotedUnit(source: string, at: number, style: "single" | "double"): Unit | undefined {
  if (style === "single") return source.startsWith("''", at) ? { text: "'", length: 2 } : undefined;
  if (source[at] !== "\\") return undefined;
  const continued = /\\\r?\n[ \t]*/uy;
  continued.lastIndex = at;
  const [joined] = continued.exec(source) ?? [];
  if (joined !== undefined) return { text: "", length: joined.length };
  const digits = { x: 2, u: 4, U: 8 }[source[at + 1] ?? ""];
  if (digits === undefined) {
    const mark = source[at + 1] ?? "";
    return { text: ESCAPES[mark] ?? mark, length: 2 };
  }
  const code = Number.parseInt(source.slice(at + 2, at + 2 + digits), 16);
  const isCharacter = code <= 0x10ffff;
  return { text: isCharacter ? String.fromCodePoint(code) : "", length: 2 + digits };
}

/** UTF-16 code units, one by one. */
function splitUnits(text: string): readonly string[] {
  return text.split("");
}
