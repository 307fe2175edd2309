import type { Expected } from "../expected.ts";

export const asleep: Expected = {
  pipeline: "sleeping",
  events: ["run.started", "route.decided build#1 to ready", "sleep.started ready#1", "run.suspended sleeping"],
  audit: ["the run has not ended"],
  show: ["suspended (sleeping)", "wakes at", "build#1  completed", "ready#1  unfinished", "sluice resume"],
  report: ["suspended", "echo built", "built"],
  files: { "built.txt": "built\n", "asked.txt": "asked\n" },
  resumed: {
    script: {},
    output: { waited: true, attempts: 2 },
    events: [
      "run.resumed",
      "sleep.ended ready#1 time",
      "route.decided ready#1 to rest",
      "sleep.started rest#1",
      "sleep.ended rest#1 time",
      "route.decided rest#1 done",
      "run.finished completed",
    ],
    files: { "built.txt": "built\n", "asked.txt": "asked\nasked\n" },
  },
};
