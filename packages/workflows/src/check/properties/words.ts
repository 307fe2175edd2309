import { visible } from "@sluice/core/runtime";
import type { PropertyVerdict } from "./prove.ts";
import type { PathStep } from "./steps.ts";

/** A step of a counterexample in words: `READY to testing (approved)`. */
function stepText({ branch, from, on, to, approved }: PathStep): string {
  const where = branch.length === 0 ? "" : `in ${branch.join(", ")}: `;
  const what =
    from !== undefined && to === from ? `${on} in ${from}` : on === "start" ? `start in ${to}` : `${on} to ${to}`;
  return `${where}${what}${approved === true ? " (approved)" : ""}`;
}

/** A counterexample in one line. */
export function pathText(path: readonly PathStep[]): string {
  return visible(path.map(stepText).join(", then ")).replaceAll("\n", "\\n");
}

/** What came of a property, as people read it. One entry is one line of text. */
export function verdictLines(text: string, verdict: PropertyVerdict): readonly string[] {
  const clean = (line: string): string => visible(line).replaceAll("\n", "\\n");
  switch (verdict.verdict) {
    case "proven":
      return [clean(`${text}: holds on every path`)];
    case "unknown":
      return [clean(`${text}: cannot be proven: ${verdict.why}`)];
    case "violated":
      return [
        clean(`${text}: does not hold. A shortest path that breaks it:`),
        ...verdict.path.map((step, index) =>
          clean(
            `  ${index + 1}. ${step.from === undefined || step.from === step.to ? "" : `${step.from}: `}${stepText(step)}`,
          ),
        ),
      ];
  }
}
