import type { Expected } from "../expected.ts";

export const cancelled: Expected = {
  pipeline: "asking",
  events: [
    "run.started",
    "grant.requested publish#1 grantStageTool",
    "call.decided publish#1 Write refused",
    "grant.expired publish#1 cancelled",
    "run.finished cancelled",
  ],
  audit: ["the run is cancelled"],
  show: ["cancelled", "the wrong branch"],
  report: ["cancelled", "the wrong branch", "granted.txt"],
  files: {},
  resumed: "ended",
};
