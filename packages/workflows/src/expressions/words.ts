import type { CelProblem } from "./problem.ts";

// Other languages' spellings, which a parser would report in its own terms or, as for a name, not at all.

const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["and", "&&"],
  ["or", "||"],
  ["not", "!"],
  ["is", "=="],
  ["None", "null"],
  ["nil", "null"],
  ["undefined", "null"],
  ["True", "true"],
  ["False", "false"],
  ["=", "=="],
  ["===", "=="],
  ["!==", "!="],
  ["&", "&&"],
  ["|", "||"],
]);

/** Texts, comments, names and operators; anything else by character. */
const TOKEN =
  /[bBrR]{0,2}(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*')|\/\/[^\n]*|[A-Za-z_]\w*|[=!]==?|&&|\|\||[<>]=|\s+|[\s\S]/g;

interface Token {
  readonly text: string;
  readonly offset: number;
}

/** Mistakes of one condition that are reported. */
const MOST_PROBLEMS = 10;

/** Reports words and operators of another language, with the CEL form. `parses` reports whether a text is CEL. */
export function foreignSpellings(expression: string, parses: (text: string) => boolean): readonly CelProblem[] {
  const tokens: Token[] = [];
  for (const match of expression.matchAll(TOKEN)) tokens.push({ text: match[0], offset: match.index });
  const found = tokens.filter((token, index) => SPELLINGS.has(token.text) && !isField(tokens, index));
  if (found.length === 0) return [];
  const corrected = found.length > MOST_PROBLEMS ? undefined : correct(tokens);
  const whole = corrected !== undefined && parses(corrected) ? corrected : undefined;
  return found.slice(0, MOST_PROBLEMS).map(({ text, offset }) => ({
    rule: "expression-syntax",
    message: `"${text}" is not CEL`,
    suggestion: whole === undefined ? `write ${celForm(text)}` : `write ${celForm(text)}, as in: ${whole}`,
    offset,
    length: text.length,
  }));
}

function celForm(text: string): string {
  return text === "not" ? "!(…)" : (SPELLINGS.get(text) ?? text);
}

/** Whether a token is the name of a field, as in `context.not`. */
function isField(tokens: readonly Token[], index: number): boolean {
  let before = index - 1;
  while (tokens[before]?.text.trim() === "") before -= 1;
  return tokens[before]?.text === ".";
}

function correct(tokens: readonly Token[]): string {
  let text = "";
  let skipsSpace = false;
  /** Where the operand of a `not` ends that needs brackets, since `!` binds more tightly. */
  const closing = new Map<number, number>();
  for (const [index, token] of tokens.entries()) {
    const cel = isField(tokens, index) ? undefined : SPELLINGS.get(token.text);
    if (!skipsSpace || token.text.trim() !== "") {
      skipsSpace = cel === "!";
      const end = skipsSpace ? comparisonEnd(tokens, index + 1) : undefined;
      if (end !== undefined) closing.set(end, (closing.get(end) ?? 0) + 1);
      text += end === undefined ? (cel ?? token.text) : "!(";
    }
    text += ")".repeat(closing.get(index) ?? 0);
  }
  return text.replace(/== !(?![=(])/g, "!= ");
}

/** The last token of the operand of a `not`, if it is a comparison. */
function comparisonEnd(tokens: readonly Token[], from: number): number | undefined {
  let depth = 0;
  let compares = false;
  let last = from;
  for (let index = from; index < tokens.length; index += 1) {
    const text = tokens[index]?.text ?? "";
    if ("([{".includes(text)) depth += 1;
    if (")]}".includes(text)) depth -= 1;
    if (depth < 0 || (depth === 0 && OPERAND_ENDS.has(text))) break;
    if (depth === 0 && COMPARISONS.has(text)) compares = true;
    if (text.trim() !== "") last = index;
  }
  return compares ? last : undefined;
}

const OPERAND_ENDS: ReadonlySet<string> = new Set(["and", "or", "&&", "||", "&", "|", "?", ":", ","]);
const COMPARISONS: ReadonlySet<string> = new Set(["=", "==", "===", "!=", "!==", "<", "<=", ">", ">=", "in", "is"]);
