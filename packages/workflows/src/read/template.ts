import { readTemplate } from "@sluice/core/runtime";

/** A template of a text that cannot be read. */
export interface TemplateFinding {
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly offset: number;
  readonly length: number;
}

/** Templates whose path starts with `input` are short for the ones that start with `ctx.input`. */
const SHORT = /(?<!\\)\{\{(\s*)input(?=[\s.[}])/gu;

/** The text with the full form of its templates. */
export function fullTemplates(text: string): string {
  return text.replaceAll(SHORT, "{{$1ctx.input");
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
