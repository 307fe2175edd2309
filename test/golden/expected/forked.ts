import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const forked: Expected = {
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
    "run.forked end#1",
    "run.resumed",
    "call.decided end#1 Bash approved envelope",
    "call.finished end#1 Bash ok",
  ],
  audit: ["in 3 journals", "the run has not ended"],
  show: ["suspended (stopped in between)", "forked from", "before end#1"],
  report: ["forked from", "before end#1", "gone left", "echo again >> end.txt"],
  files: { "left.txt": "left\n", "right.txt": "right\n", "end.txt": "joined\nagain\n" },
  resumed: {
    script: { begin: [AGAIN], left: [AGAIN, AGAIN], right: [AGAIN, AGAIN], end: [AGAIN, finishes("joined twice")] },
    output: { joined: "joined twice", left: { text: "gone left" }, right: { text: "gone right" } },
    events: ["run.resumed", "route.decided end#1 done", "run.finished completed"],
    files: { "left.txt": "left\n", "right.txt": "right\n", "end.txt": "joined\nagain\n" },
  },
};
