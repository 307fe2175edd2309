import type { MarkedToken, Token } from "marked";

/** A type guard: the parser's types allow every name for tokens of extensions, so comparing names does not narrow. */
export function isOf<T extends MarkedToken["type"]>(
  token: Token,
  type: T,
): token is Extract<MarkedToken, { readonly type: T }> {
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
