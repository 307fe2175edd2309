import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const killed: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Bash approved envelope",
    "call.finished check#1 Bash ok",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "draft#1  completed", "check#1  unfinished", "sluice resume"],
  report: ["suspended", "echo drafted >> draft.txt", "echo checked >> check.txt"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\n" },
  resumed: {
    script: { draft: [AGAIN, AGAIN], check: [AGAIN, finishes("after the kill")] },
    output: { checked: "after the kill", task: "killed" },
    events: ["run.resumed", "route.decided check#1 done", "run.finished completed"],
    files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  },
};
