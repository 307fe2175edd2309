import type { Report } from "./problems.ts";

const STATE_LIMITS = ["maxTokens", "maxCostUsd", "timeoutMs"];
const RUN_LIMITS = [...STATE_LIMITS, "maxVisits", "maxHops"];

/** Caps are counts, milliseconds or dollars: zero would end what has not begun, and a fraction of a count is a mistake. */
export function checkLimits(report: Report, path: string, limits: unknown, of: "state" | "run"): void {
  if (limits === undefined) return;
  if (typeof limits !== "object" || limits === null) {
    report.add(path, "is an object of limits");
    return;
  }
  report.unknownKeys(path, limits, of === "run" ? RUN_LIMITS : STATE_LIMITS);
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    const wanted = name === "maxCostUsd" ? "is a number above 0, in US dollars" : "is a whole number from 1";
    const fits = name === "maxCostUsd" ? isAmount(value) : isCount(value);
    if (!fits) report.add(`${path}.${name}`, wanted, "leave it out for no such limit");
  }
}

/** A whole number from 1. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
