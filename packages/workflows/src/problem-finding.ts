import type { Problem } from "@sluice/core";
import { pathWords } from "./diagnostic.ts";
import type { FindingAt } from "./format.ts";
import type { Finding } from "./read/shape.ts";

/** A problem of a compiled definition as a finding in the document. */
export function problemFinding(problem: Problem, at: FindingAt): Finding {
  const subject = at.path.length === 0 ? "The workflow" : pathWords(at.path);
  const hint = problem.suggestion === undefined ? {} : { suggestion: problem.suggestion };
  return { severity: "error", rule: ruleOf(problem), message: `${subject}: ${problem.message}.`, ...hint, ...at };
}

/** The rule that it breaks. */
function ruleOf({ path, message }: Problem): string {
  if (path.includes("allowedTools")) return message.includes("matches no tool") ? "unknown-tool" : "tool-pattern";
  if (/\benv\./u.test(path)) return "variable-name";
  if (/\bprompt$/u.test(path)) return "bad-template";
  if (message.startsWith("cannot be reached")) return "unreachable";
  return message.startsWith("is a dead end") ? "dead-end" : "definition";
}
