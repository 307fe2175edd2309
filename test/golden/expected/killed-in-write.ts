import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

/** The hash of the file shows that it was written, so the call is not repeated. */
export const killedInWrite: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Write approved envelope",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "check#1  unfinished"],
  report: ["suspended", "check.txt"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\n" },
  resumed: {
    script: { draft: [AGAIN, AGAIN], check: [AGAIN, finishes("written")] },
    output: { checked: "written", task: "killed in a write" },
    events: [
      "run.resumed",
      "call.finished check#1 Write recovered",
      "route.decided check#1 done",
      "run.finished completed",
    ],
    files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  },
};
