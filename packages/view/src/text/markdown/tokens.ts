import type { Token, Tokens } from "marked";

/** The parser's tokens that are rendered, by name. */
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

/** A type guard: the parser's types allow every name for tokens of extensions, so comparing names does not narrow. */
export function isOf<T extends keyof TokenKinds>(token: Token, type: T): token is TokenKinds[T] {
  return token.type === type;
}

/** Decodes entities, which the parser leaves in text. */
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
