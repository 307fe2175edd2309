import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const provider: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Bash approved envelope",
    "call.finished check#1 Bash ok",
    "execution.suspended check#1 provider",
    "run.suspended provider",
  ],
  audit: ["the run has not ended"],
  show: [
    "suspended (a provider failed)",
    "HTTP 401: invalid key (unauthorized)",
    "check#1  unfinished",
    "sluice resume",
  ],
  report: ["suspended", "echo drafted >> draft.txt", "echo checked >> check.txt"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\n" },
  resumed: {
    script: { draft: [AGAIN, AGAIN], check: [AGAIN, finishes("with another key")] },
    output: { checked: "with another key", task: "suspended by a provider" },
    events: [
      "run.resumed",
      "execution.continued check#1 resume",
      "route.decided check#1 done",
      "run.finished completed",
    ],
    files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  },
};
