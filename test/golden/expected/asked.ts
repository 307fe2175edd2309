import { userName } from "../../../packages/tui/src/user/person.ts";
import type { Expected } from "../expected.ts";

export const asked: Expected = {
  pipeline: "asked",
  events: ["run.started", "request.opened ask#1 humanState", "run.suspended waiting"],
  audit: ["the run has not ended"],
  show: ["suspended (waiting for an answer)", "Publish asked?", "sluice answer"],
  report: ["suspended", "Publish asked?"],
  files: {},
  resumed: {
    answer: ["--value", "yes"],
    script: {},
    output: { answer: "yes" },
    events: [
      "run.resumed",
      `request.answered ask#1 value ${userName()}`,
      "route.decided ask#1 done",
      "run.finished completed",
    ],
    files: {},
  },
};
