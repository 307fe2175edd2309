import type { Expected } from "../expected.ts";

export const resumed: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Bash approved envelope",
    "run.resumed",
    "call.finished check#1 Bash outcome_unknown",
    "route.decided check#1 done",
    "run.finished completed",
  ],
  audit: ["outcome=outcome_unknown", "the run is completed"],
  show: ["completed", '"checked": "fine"', '"task": "resumed"'],
  report: ["completed", "echo checked >> check.txt", "outcome_unknown"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  resumed: "ended",
};
