import type { Expected } from "../expected.ts";
import { AGAIN, sends } from "../script.ts";

export const written: Expected = {
  pipeline: "written",
  events: [
    "run.started",
    "run.started",
    "route.decided design#1 done",
    "run.finished completed",
    "fanOut.joined",
    "run.started",
    "call.decided work#1 Read approved envelope",
    "call.finished work#1 Read ok",
  ],
  audit: ["the run has not ended"],
  show: ["suspended (stopped in between)", "design#1", "unfinished", "sluice resume"],
  report: ["suspended", "pipeline note", "nested.ts"],
  files: {},
  // The document is read from the journal: the model is not asked for another one.
  resumed: {
    script: { design: [AGAIN, AGAIN], work: [AGAIN, sends("DONE")] },
    output: { pipeline: "note" },
    events: [
      "run.resumed",
      "route.decided work#1 to done",
      "run.finished done completed",
      "fanOut.joined",
      "route.decided design#1 done",
      "run.finished completed",
    ],
    files: {},
  },
};
