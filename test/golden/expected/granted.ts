import type { Expected } from "../expected.ts";

export const granted: Expected = {
  pipeline: "asking",
  events: [
    "run.started",
    "call.decided publish#1 AskUser approved envelope",
    "request.opened publish#1 askUser",
    "request.answered publish#1 value recorder",
    "call.finished publish#1 AskUser ok",
    "grant.requested publish#1 grantStageTool",
    "grant.answered publish#1 approve recorder",
    "call.decided publish#1 Write approved grant",
    "grant.consumed publish#1",
    "call.finished publish#1 Write ok",
    "grant.requested publish#1 grantStageTool",
    "grant.answered publish#1 deny that file stays away recorder",
    "call.decided publish#1 Write refused denied",
    "route.decided publish#1 done",
    "run.finished completed",
  ],
  audit: ["answer=approve by=recorder", "answer=deny by=recorder", "reason=that file stays away"],
  show: ["completed", "publish#1 attempt 1 t3.c0: Write (denied)", '"published": "red"'],
  report: ["Which colour?", "recorder", "that file stays away", "granted.txt", "denied.txt"],
  files: { "granted.txt": "granted\n" },
  resumed: "ended",
};
