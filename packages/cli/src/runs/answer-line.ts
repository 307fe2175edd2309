import type { OpenRequest } from "@sluice/core";
import { type AnswerRoute, answerWords } from "@sluice/tui/user";

/** The command line that answers a request of a run from elsewhere. */
export function answerLine(
  request: OpenRequest,
  route: AnswerRoute,
  line: (words: readonly string[]) => string,
): string {
  // The terminal of the run shows the code; without such a process, the answer resumes the run.
  const proof = { freely: [], code: ["--code", "…"], resume: ["--resume"] }[route];
  return line(answerWords(request, proof));
}
