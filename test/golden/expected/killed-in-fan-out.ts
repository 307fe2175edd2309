import type { Expected } from "../expected.ts";
import { AGAIN, appends, finishes } from "../script.ts";

export const killedInFanOut: Expected = {
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
  ],
  audit: ["in 3 journals", "the run has not ended"],
  show: ["suspended (stopped in between)"],
  report: ["suspended", "gone left"],
  files: { "left.txt": "left\n", "right.txt": "right\n" },
  resumed: {
    script: {
      begin: [AGAIN],
      left: [AGAIN, AGAIN],
      right: [AGAIN, finishes("right after the kill")],
      end: [appends("joined", "end.txt"), finishes("joined")],
    },
    output: { joined: "joined", left: { text: "gone left" }, right: { text: "right after the kill" } },
    events: [
      "run.resumed",
      "run.finished right completed",
      "fanOut.joined",
      "call.decided end#1 Bash approved envelope",
      "call.finished end#1 Bash ok",
      "route.decided end#1 done",
      "run.finished completed",
    ],
    files: { "left.txt": "left\n", "right.txt": "right\n", "end.txt": "joined\n" },
  },
};
