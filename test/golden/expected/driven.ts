import type { Expected } from "../expected.ts";
import { AGAIN, finishes } from "../script.ts";

export const driven: Expected = {
  pipeline: "inTurn",
  events: [
    "run.started",
    "call.decided draft#1 Bash approved envelope",
    "call.finished draft#1 Bash ok",
    "route.decided draft#1 to check",
    "call.decided check#1 Bash approved envelope",
    "call.finished check#1 Bash ok",
  ],
  audit: ["the run has not ended", 'agent={"name":"mcp","class":"advisory"}'],
  show: ["suspended (stopped in between)", "check#1  unfinished", "agent", "sluice gateway --resume"],
  report: ["suspended", "agent", "echo drafted >> draft.txt", "echo checked >> check.txt"],
  files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\n" },
  // A model takes over from the agent.
  resumed: {
    script: { draft: [AGAIN, AGAIN], check: [AGAIN, finishes("after the agent")] },
    output: { checked: "after the agent", task: "driven" },
    events: ["run.resumed", "route.decided check#1 done", "run.finished completed"],
    files: { "draft.txt": "drafted\n", "check.txt": "checked\n", "hooks.txt": "draft completed\ncheck completed\n" },
  },
};
