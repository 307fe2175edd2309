import type { Expected } from "../expected.ts";

export const fanOut: Expected = {
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
    "run.finished right completed",
    "fanOut.joined",
    "call.decided end#1 Bash approved envelope",
    "call.finished end#1 Bash ok",
    "route.decided end#1 done",
    "run.finished completed",
  ],
  audit: ["in 3 journals", "the run is completed"],
  show: ["completed", "left#1 (", "right#1 (", '"text": "gone left"', '"joined": "joined"'],
  report: ["completed", "gone left", "gone right", "joined"],
  files: { "left.txt": "left\n", "right.txt": "right\n", "end.txt": "joined\n" },
  resumed: "ended",
};
