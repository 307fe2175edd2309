import type { Report } from "./problems.ts";

const STATE_LIMITS = ["maxTokens", "timeoutMs"];
const RUN_LIMITS = [...STATE_LIMITS, "maxVisits", "maxHops"];

/** Caps are counts or milliseconds: zero would end what has not begun, and a fraction is a mistake. */
export function checkLimits(report: Report, path: string, limits: unknown, of: "state" | "run"): void {
  if (limits === undefined) return;
  if (typeof limits !== "object" || limits === null) {
    report.add(path, "is an object of limits");
    return;
  }
  report.unknownKeys(path, limits, of === "run" ? RUN_LIMITS : STATE_LIMITS);
  for (const [name, value] of Object.entries(limits)) {
    if (value !== undefined && !isCount(value))
      report.add(`${path}.${name}`, "is a whole number from 1", "leave it out for no such limit");
  }
}

/** A whole number from 1. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}
