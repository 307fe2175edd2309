import { visibleLine } from "@sluice/core/runtime";
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
  return visibleLine(path.map(stepText).join(", then "));
}

/** What came of a property, as people read it. One entry is one line of text. */
export function verdictLines(text: string, verdict: PropertyVerdict): readonly string[] {
  switch (verdict.verdict) {
    case "proven":
      return [visibleLine(`${text}: holds on every path`)];
    case "unknown":
      return [visibleLine(`${text}: cannot be proven: ${verdict.why}`)];
    case "violated":
      return [
        visibleLine(`${text}: does not hold. A shortest path that breaks it:`),
        ...verdict.path.map((step, index) =>
          visibleLine(
            `  ${index + 1}. ${step.from === undefined || step.from === step.to ? "" : `${step.from}: `}${stepText(step)}`,
          ),
        ),
      ];
  }
}
