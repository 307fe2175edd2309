import type { Token, Tokens } from "marked";

/** The tokens of the parser that are drawn, by name. */
interface TokenKinds {
  readonly heading: Tokens.Heading;
  readonly paragraph: Tokens.Paragraph;
  readonly text: Tokens.Text;
  readonly code: Tokens.Code;
  readonly blockquote: Tokens.Blockquote;
  readonly list: Tokens.List;
  readonly table: Tokens.Table;
  readonly strong: Tokens.Strong;
  readonly em: Tokens.Em;
  readonly del: Tokens.Del;
  readonly codespan: Tokens.Codespan;
  readonly br: Tokens.Br;
  readonly link: Tokens.Link;
  readonly image: Tokens.Image;
  readonly escape: Tokens.Escape;
}

/** The parser's own types let every name stand for a token of an extension, so that comparing names alone tells nothing. */
export function isOf<T extends keyof TokenKinds>(token: Token, type: T): token is TokenKinds[T] {
  return token.type === type;
}

/** Marked leaves entities in text as they were written. */
export function decoded(text: string): string {
  return text.includes("&")
    ? text.replaceAll(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity)
    : text;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": " ",
};
