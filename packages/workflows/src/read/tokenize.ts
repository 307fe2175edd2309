import { type CST, Lexer, Parser } from "yaml";
import type { ReadFault } from "./fault.ts";
import { depthFault, MAX_DEPTH } from "./limits.ts";

/** Tokens of a file, white space included. What follows costs time for each of them. */
const MAX_TOKENS = 100_000;

/**
 * The tokens of one document, nested no deeper than the limit. Lexer and parser take time in proportion to the text and do not
 * recurse, so that the text may be anything; whatever reads on may recurse.
 */
export function tokenize(text: string): readonly CST.Token[] | ReadFault {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemes = 0;
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexemes > MAX_TOKENS) return tokensFault(offset);
    for (const token of parser.next(lexeme)) tokens.push(token);
    offset = parser.offset;
  }
  for (const token of parser.end()) tokens.push(token);
  return streamFault(tokens) ?? nestingFault(tokens) ?? tokens;
}

function tokensFault(offset: number): ReadFault {
  const message = `The file has more than ${MAX_TOKENS} keys, values and marks.`;
  return {
    rule: "file-size",
    message,
    suggestion: "split the workflow into several files",
    start: offset,
    end: offset,
  };
}

/** What stands beside the one document. */
function streamFault(tokens: readonly CST.Token[]): ReadFault | undefined {
  let documents = 0;
  for (const token of tokens) {
    const { offset } = token;
    if (token.type === "directive") {
      const message = "YAML directives are not supported.";
      return {
        rule: "syntax",
        message,
        suggestion: "remove the line",
        start: offset,
        end: offset + token.source.length,
      };
    }
    if (token.type === "error") {
      const message = `The file is neither YAML nor JSON here: ${token.message}.`;
      return { rule: "syntax", message, start: offset, end: offset + token.source.length };
    }
    if (token.type !== "document") continue;
    documents += 1;
    if (documents > 1) {
      const message = "The file holds more than one document.";
      return { rule: "syntax", message, suggestion: "write each to a file of its own", start: offset, end: offset + 3 };
    }
  }
  return undefined;
}

/** The first part that is nested too deep. */
function nestingFault(tokens: readonly CST.Token[]): ReadFault | undefined {
  const waiting: { readonly token: CST.Token; readonly depth: number }[] = [];
  for (const token of tokens) {
    if (token.type === "document" && token.value !== undefined) waiting.push({ token: token.value, depth: 1 });
  }
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { token, depth } = next;
    if (!("items" in token)) continue;
    if (depth > MAX_DEPTH) return depthFault(token.offset, token.offset + 1);
    for (const item of token.items) {
      for (const child of [item.key, item.value]) {
        if (child !== null && child !== undefined) waiting.push({ token: child, depth: depth + 1 });
      }
    }
  }
  return undefined;
}
