import { revealed } from "../../text/clean.ts";
import type { Line, Style } from "../../text/line.ts";

const MADE: unique symbol = Symbol("HTML of this module");

/** HTML that this module made; no untrusted value can have this type. */
export interface Markup {
  readonly [MADE]: string;
  /** UTF-16 units. */
  readonly length: number;
}

type Part = string | number | Markup | readonly Markup[] | undefined;

export const NOTHING: Markup = made("");

/**
 * A template with values. Text is escaped for content and for quoted attributes, invisible characters are written out, and line
 * breaks are `⏎`. Only markup is inserted unchanged.
 */
export function html(constant: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let text = constant[0] ?? "";
  for (const [at, part] of parts.entries()) text += markupOf(part) + (constant[at + 1] ?? "");
  return made(text);
}

export function joined(parts: readonly Markup[], between: Markup = NOTHING): Markup {
  return made(parts.map(textOf).join(textOf(between)));
}

/** Text on one line with invisible characters marked, so that they differ from the same letters typed. */
export function exact(text: string): Markup {
  if (text.length <= LONGEST && PLAIN.test(text)) return made(escaped(text));
  const spans = revealed(text, "plain", LONGEST).map(({ text: shown, style }) =>
    style === "unseen" ? `<i class="unseen">${escaped(shown)}</i>` : escaped(shown),
  );
  return made(spans.join(""));
}

/** UTF-16 units of a line, and of a text that `html` inserts, such as a name. */
const LONGEST = 4_000;
const LONGEST_NAME = 1_000;

/** A link inside the page, if its target exists. */
export function linkTo(anchor: string | undefined, shown: Markup): Markup {
  return anchor === undefined ? shown : html`<a href="#${anchor}">${shown}</a>`;
}

export function textOf(markup: Markup): string {
  return markup[MADE];
}

/** Text as numeric references, for characters that `exact` would mark as invisible, such as the joiners of an emoji. */
export function references(text: string): Markup {
  return made([...text].map((character) => `&#${character.codePointAt(0) ?? 0};`).join(""));
}

const CLASSES: Partial<Readonly<Record<Style, string>>> = {
  dim: "faint",
  good: "good",
  bad: "bad",
  notice: "notice",
  unseen: "unseen",
};

/** The CSS class of a style; empty if it needs none. */
export function classOf(style: Style): string {
  return CLASSES[style] ?? "";
}

/** A line of styled spans as HTML. */
export function lineMarkup(line: Line): Markup {
  return joined(
    line.map(({ text, style = "plain" }) => {
      const name = classOf(style);
      return name === "" ? html`${text}` : html`<span class="${name}">${text}</span>`;
    }),
  );
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
