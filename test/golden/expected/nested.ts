import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const nested: Expected = {
  pipeline: "nested",
  events: ["run.started", "run.started", "call.decided work#1 Bash approved envelope", "call.finished work#1 Bash ok"],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "outer#1", "unfinished", "sluice resume"],
  report: ["suspended", "pipeline inner", "echo worked >> work.txt"],
  files: { "work.txt": "worked\n" },
  resumed: {
    script: { work: [AGAIN, finishes("after the kill")] },
    output: { inner: { worked: "after the kill" } },
    events: [
      "run.resumed",
      "route.decided work#1 done",
      "run.finished completed",
      "fanOut.joined",
      "route.decided outer#1 done",
      "run.finished completed",
    ],
    files: { "work.txt": "worked\n", "hooks.txt": "work completed\n" },
  },
};
