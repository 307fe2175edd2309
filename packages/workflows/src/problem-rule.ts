import type { Problem } from "@sluice/core";

/** The rule of a diagnostic that a problem of a compiled definition breaks. */
export function ruleOf({ path, message }: Problem): string {
  if (path.includes("allowedTools")) return message.includes("matches no tool") ? "unknown-tool" : "tool-pattern";
  if (/\benv\./u.test(path)) return "variable-name";
  if (/\bprompt$/u.test(path)) return "bad-template";
  if (message.startsWith("cannot be reached")) return "unreachable";
  return message.startsWith("is a dead end") ? "dead-end" : "definition";
}
