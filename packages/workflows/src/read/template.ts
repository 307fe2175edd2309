import type { TextPlace } from "@sluice/core";
import { readTemplate } from "@sluice/core/runtime";

/** A template of a text that cannot be read. */
export interface TemplateFinding {
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly offset: number;
  readonly length: number;
}

/** Templates whose path starts with `input` are short for the ones that start with `ctx.input`. */
const SHORT = /(?<!\\)\{\{\s*(?=input[\s.[}])/gu;
const ROOT = "ctx.";

/** The text with the full form of its templates. */
export function fullTemplates(text: string): string {
  return expandTemplates(text).text;
}

/** The same with the places that its parts have in the text as it was written. */
export function expandTemplates(text: string): { readonly text: string; original(place: TextPlace): TextPlace } {
  const added: number[] = [];
  const full = text.replaceAll(SHORT, (braces: string, offset: number) => {
    added.push(offset + braces.length + added.length * ROOT.length);
    return `${braces}${ROOT}`;
  });
  const original = (offset: number): number => offset - ROOT.length * added.filter((at) => at < offset).length;
  return {
    text: full,
    original: ({ offset, length }) => {
      const start = original(offset);
      return { offset: start, length: original(offset + length) - start };
    },
  };
}

/** The faults of a text's templates, each where it is. */
export function templateFindings(text: string): readonly TemplateFinding[] {
  const found: TemplateFinding[] = [];
  for (const { 0: template, index: offset } of text.matchAll(/(?<!\\)\{\{(?:[^}]|\}(?!\}))*(?:\}\}|$)/gu)) {
    const reading = readTemplate(fullTemplates(template));
    if (reading.ok) continue;
    for (const { message, suggestion } of reading.faults)
      found.push({ message: `${message}.`, suggestion, offset, length: template.length });
  }
  return found;
}
