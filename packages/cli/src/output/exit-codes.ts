import type { ErrorClass } from "@sluice/core";

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

export interface Ended {
  readonly status: "completed" | "failed" | "cancelled" | "suspended";
  readonly denied: number;
  readonly failOnDenied: boolean;
  readonly stoppedBy?: StopSignal;
}

export function exitCodeOf({ status, denied, failOnDenied, stoppedBy }: Ended): number {
  switch (status) {
    case "completed":
      return failOnDenied && denied > 0 ? EXIT.denied : EXIT.completed;
    case "failed":
    case "cancelled":
      return EXIT.failed;
    case "suspended":
      return stoppedBy === undefined ? EXIT.suspended : STOPPED[stoppedBy];
  }
}

/** The exit code of an error that no run reports. */
export function exitCodeOfError(errorClass: ErrorClass | undefined): number {
  switch (errorClass) {
    case "Validation":
      return EXIT.usage;
    case "Session":
    case "Host":
      return EXIT.environment;
    case "ProviderTransient":
    case "ProviderCapability":
    case "ToolTransient":
    case "ToolTerminal":
    case "Cancellation":
    case undefined:
      return EXIT.failed;
  }
}
