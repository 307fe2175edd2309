import type { ErrorClass } from "@sluice/core";
import type { RunReport } from "./run-report.ts";

export const EXIT = {
  completed: 0,
  failed: 1,
  usage: 2,
  suspended: 3,
  environment: 4,
  denied: 5,
} as const;

/** 128 plus the signal's number, as in shells. */
export const STOPPED = { SIGINT: 130, SIGTERM: 143 } as const;
export type StopSignal = keyof typeof STOPPED;

/** The exit code of a run. `denied` is whether denied calls count and there are any; `stoppedBy` the signal that suspended it. */
export function exitCodeOf(status: RunReport["status"], denied: boolean, stoppedBy: StopSignal | undefined): number {
  switch (status) {
    case "completed":
      return denied ? EXIT.denied : EXIT.completed;
    case "failed":
    case "cancelled":
      return EXIT.failed;
    case "suspended":
      return stoppedBy === undefined ? EXIT.suspended : STOPPED[stoppedBy];
  }
}

/** The exit code of an error that no run reports. */
export function exitCodeOfError(errorClass: ErrorClass | undefined): number {
  if (errorClass === "Validation") return EXIT.usage;
  return errorClass === "Session" || errorClass === "Host" ? EXIT.environment : EXIT.failed;
}
