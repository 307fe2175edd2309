import { revealed } from "../../text/clean.ts";

const MADE: unique symbol = Symbol("HTML that was made here");

/** HTML that this file made: no value of somebody's can have its type. */
export interface Markup {
  readonly [MADE]: string;
  /** UTF-16 units. */
  readonly length: number;
}

type Part = string | number | Markup | readonly Markup[] | undefined;

export const NOTHING: Markup = made("");

/**
 * HTML with values put in. Text is escaped for content and for quoted attributes, with everything unseen written out and line
 * breaks as `⏎`; only what `html` and `verbatim` made is taken as it is.
 */
export function html(constant: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let text = constant[0] ?? "";
  for (const [at, part] of parts.entries()) text += markupOf(part) + (constant[at + 1] ?? "");
  return made(text);
}

/** What stands in our own source, as it is: nothing can be put in. */
export function verbatim(constant: TemplateStringsArray): Markup {
  return made(constant[0] ?? "");
}

export function joined(parts: readonly Markup[], between: Markup = NOTHING): Markup {
  return made(parts.map(textOf).join(textOf(between)));
}

/** One line of text as it will be acted on, with everything unseen marked: what could be typed as well is told from the real one. */
export function exact(text: string): Markup {
  if (text.length <= LONGEST && PLAIN.test(text)) return made(escaped(text));
  const spans = revealed(text, "plain", LONGEST).map(({ text: shown, style }) =>
    style === "unseen" ? `<i class="unseen">${escaped(shown)}</i>` : escaped(shown),
  );
  return made(spans.join(""));
}

/** UTF-16 units of a line, and of a text that is put in by itself, such as a name: nothing makes a page large by itself. */
const LONGEST = 4_000;
const LONGEST_NAME = 1_000;

/** A way to a place in the page, where it is there. */
export function linkTo(anchor: string | undefined, shown: Markup): Markup {
  return anchor === undefined ? shown : html`<a href="#${anchor}">${shown}</a>`;
}

/** The HTML itself. */
export function textOf(markup: Markup): string {
  return markup[MADE];
}

/** Text as numeric references, whatever it is: for what would be marked as unseen and is not, such as the joiners of an emoji. */
export function references(text: string): Markup {
  return made([...text].map((character) => `&#${character.codePointAt(0) ?? 0};`).join(""));
}

const PLAIN = /^[\x20-\x7e]*$/;
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function made(text: string): Markup {
  return { [MADE]: text, length: text.length };
}

function isMarkup(part: Markup | readonly Markup[]): part is Markup {
  return MADE in part;
}

function markupOf(part: Part): string {
  if (part === undefined) return "";
  if (typeof part === "number") return String(part);
  if (typeof part !== "string") return isMarkup(part) ? part[MADE] : part.map(textOf).join("");
  if (part.length <= LONGEST_NAME && PLAIN.test(part)) return escaped(part);
  return escaped(
    revealed(part, "plain", LONGEST_NAME)
      .map(({ text }) => text)
      .join(""),
  );
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
