import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

/** No record shows whether the command ran: it is not run again, and its outcome is unknown. */
export const outcomeUnknown: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Bash approved envelope",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "check#1  unfinished"],
  report: ["suspended", "echo checked >> check.txt"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\n" },
  resumed: {
    script: { draft: [AGAIN, AGAIN], check: [AGAIN, finishes("unknown")] },
    output: { checked: "unknown", task: "killed in a command" },
    events: [
      "run.resumed",
      "call.finished check#1 Bash outcome_unknown",
      "route.decided check#1 done",
      "run.finished completed",
    ],
    files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  },
};
