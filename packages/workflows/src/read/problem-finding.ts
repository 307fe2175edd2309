import type { Problem } from "@sluice/core";
import { pathWords } from "../diagnostic.ts";
import type { FindingAt } from "../format.ts";
import type { Finding } from "./shape.ts";

/** The problems of a compiled definition as findings in the document. */
export function problemFindings(
  problems: readonly Problem[] | undefined,
  locate: (problem: Problem) => FindingAt,
): readonly Finding[] {
  return (problems ?? []).map((problem) => problemFinding(problem, locate(problem)));
}

function problemFinding(problem: Problem, at: FindingAt): Finding {
  const rule = ruleOf(problem);
  // A pattern names itself.
  const subject = isPattern(problem) ? "" : `${at.path.length === 0 ? "The workflow" : pathWords(at.path)}: `;
  // Files have no optional tools.
  const suggestion = problem.suggestion?.replace(/; or \{ tool: .*$/su, "");
  return { severity: "error", rule, message: `${subject}${problem.message}.`, suggestion, ...at };
}

function isPattern({ path }: Pick<Problem, "path">): boolean {
  return path.includes("allowedTools");
}

/** The rule that it breaks. */
function ruleOf({ path, message }: Problem): string {
  if (isPattern({ path })) return message.includes("matches no tool") ? "unknown-tool" : "tool-pattern";
  if (/\benv\./u.test(path)) return "variable-name";
  if (/\bprompt$/u.test(path)) return "bad-template";
  if (message.startsWith("cannot be reached")) return "unreachable";
  return message.startsWith("is a dead end") ? "dead-end" : "definition";
}
