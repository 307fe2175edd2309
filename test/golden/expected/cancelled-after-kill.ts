import type { Expected } from "../expected.ts";

export const cancelledAfterKill: Expected = {
  pipeline: "sideBySide",
  events: [
    "run.started",
    "route.decided begin#1 fanOut left,right",
    "run.started left",
    "call.decided left#1 Bash approved envelope",
    "call.finished left#1 Bash ok",
    "run.finished left completed",
    "run.started right",
    "call.decided right#1 Bash approved envelope",
    "call.finished right#1 Bash ok",
    "run.finished cancelled no longer needed",
    "run.finished cancelled no longer needed",
  ],
  audit: ["in 3 journals", "the run is cancelled"],
  show: ["cancelled", "no longer needed"],
  report: ["cancelled", "no longer needed", "gone left"],
  files: { "left.txt": "left\n", "right.txt": "right\n" },
  resumed: "ended",
};
