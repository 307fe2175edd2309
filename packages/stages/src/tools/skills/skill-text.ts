import type { TextMask } from "@sluice/core";
import { maskedHead } from "../../secrets/cut-text.ts";

/** A SKILL.md: the fields of its frontmatter that Sluice reads, and the text below it. */
export interface SkillText {
  readonly description: string;
  /** Whether its frontmatter lists tools, which has no effect here. */
  readonly listsTools: boolean;
  readonly body: string;
}

const LONGEST_DESCRIPTION = 1_024;
const FENCE = /^---[ \t]*$/;

/**
 * Reads a SKILL.md. Its frontmatter is read line by line and not as YAML, because skills in use hold descriptions that YAML
 * refuses, such as `description: Use for: tables`. Never throws; a file without frontmatter has no description.
 */
export function readSkillText(text: string, secrets: Pick<TextMask, "text">): SkillText {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const end = FENCE.test(lines[0] ?? "") ? lines.findIndex((line, index) => index > 0 && FENCE.test(line)) : -1;
  if (end === -1) return { description: "", listsTools: false, body: lines.join("\n") };
  const header = lines.slice(1, end);
  return {
    description: shortened(oneLine(fieldText(header, "description")), secrets),
    listsTools: header.some((line) => /^allowed[-_]tools[ \t]*:/i.test(line)),
    body: lines.slice(end + 1).join("\n"),
  };
}

/** The value of a top-level key: the rest of its line without quotes, or the indented lines below it. */
function fieldText(header: readonly string[], key: string): string {
  const at = header.findIndex((line) => line.startsWith(`${key}:`));
  if (at === -1) return "";
  const first = (header[at] ?? "").slice(key.length + 1).trim();
  const below = header.slice(at + 1);
  const end = below.findIndex((line) => /^\S/.test(line));
  const more = (end === -1 ? below : below.slice(0, end)).map((line) => line.trim());
  const parts = /^[|>][-+\d]*$/.test(first) ? more : [first, ...more];
  return unquoted(parts.filter((part) => part !== "").join(" "));
}

function unquoted(text: string): string {
  const [, quote, inside = ""] = /^(["'])(.*)\1$/s.exec(text) ?? [];
  if (quote === undefined) return text;
  return quote === "'" ? inside.replaceAll("''", "'") : inside.replaceAll(/\\(["\\])/g, "$1");
}

/** The text as one line that shows what it holds: no control characters, no characters that change the direction of text. */
function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function shortened(text: string, secrets: Pick<TextMask, "text">): string {
  return text.length > LONGEST_DESCRIPTION ? `${maskedHead(text, LONGEST_DESCRIPTION, secrets)}…` : text;
}
