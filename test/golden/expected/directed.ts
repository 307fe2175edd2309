import type { Expected } from "../expected.ts";
import { AGAIN, turn } from "../script.ts";

export const directed: Expected = {
  pipeline: "directed",
  events: [
    "run.started",
    "route.decided orchestrator#1 to write",
    "call.decided write#1 Bash approved envelope",
    "call.finished write#1 Bash ok",
    "route.decided write#1 to orchestrator",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "orchestrator#1  completed", "write#1         completed", "sluice resume"],
  report: ["suspended", "echo written >> a.txt", "it is missing"],
  files: { "a.txt": "written\n" },
  resumed: {
    script: {
      orchestrator: [
        AGAIN,
        AGAIN,
        turn("select_state", { state: "completed", input: { wrote: "a.txt" } }),
        { text: "Done." },
      ],
      write: [AGAIN, AGAIN],
    },
    output: { wrote: "a.txt" },
    events: ["run.resumed", "route.decided orchestrator#2 done", "run.finished completed"],
    files: { "a.txt": "written\n" },
  },
};
