import { userName } from "../../../packages/tui/src/user/person.ts";
import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const grantOpen: Expected = {
  pipeline: "asking",
  events: ["run.started", "grant.requested publish#1 grantStageTool", "run.suspended waiting"],
  audit: ["the run has not ended"],
  show: ["suspended (waiting for an answer)", "granted.txt", "sluice answer"],
  report: ["suspended", "granted.txt"],
  files: {},
  resumed: {
    answer: ["approve"],
    script: { publish: [AGAIN, finishes("granted after all")] },
    output: { published: "granted after all" },
    events: [
      "run.resumed",
      `grant.answered publish#1 approve ${userName()}`,
      "call.decided publish#1 Write approved grant",
      "grant.consumed publish#1",
      "call.finished publish#1 Write ok",
      "route.decided publish#1 done",
      "run.finished completed",
    ],
    files: { "granted.txt": "granted\n" },
  },
};
