import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const routed: Expected = {
  pipeline: "routed",
  events: [
    "run.started",
    "route.decided pick#1 to write",
    "call.decided write#1 Bash approved envelope",
    "call.finished write#1 Bash ok",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "pick#1   completed", "write#1  unfinished", "sluice resume"],
  report: ["suspended", "echo written >> a.txt", "it is missing"],
  files: { "a.txt": "written\n" },
  resumed: {
    script: { pick: [AGAIN, AGAIN], write: [AGAIN, finishes("after the kill")] },
    output: { wrote: "after the kill" },
    events: ["run.resumed", "route.decided write#1 done", "run.finished completed"],
    files: { "a.txt": "written\n" },
  },
};
