import type { JsonObject } from "@sluice/core";
import { redactText } from "@sluice/core/runtime";
import { timeWithCountdown } from "../output/countdown.ts";
import type { Woken } from "./waker.ts";

/** What a wake came to, in one line without the run's id. */
export function wokenText(woken: Woken, now: number): string {
  switch (woken.kind) {
    case "ended":
      return woken.message === undefined ? woken.status : `${woken.status}: ${redactText(woken.message)}`;
    case "asleep":
      return `sleeps until ${timeWithCountdown(woken.wakeAt, now)}`;
    case "waiting": {
      const until = woken.wakeAt === undefined ? "" : `, until ${timeWithCountdown(woken.wakeAt, now)}`;
      return `waits for an answer${until}: ${woken.lines.join("; ")}`;
    }
    case "provider": {
      const next =
        woken.wakeAt === undefined
          ? `continues with: ${woken.line}`
          : `is tried again at ${timeWithCountdown(woken.wakeAt, now)}`;
      return `suspended, and ${next}. The provider failed: ${redactText(woken.message)}`;
    }
    case "interrupted":
      return "stopped here; it is due again";
    case "elsewhere":
      return "continued by another process, or ended meanwhile";
    case "refused":
      return `not resumed: ${redactText(woken.message)}`;
    case "failed":
      return `stopped: ${redactText(woken.message)}`;
    case "stuck":
      return `left alone: it was resumed ${woken.resumes} times in a row without recording a step; see what stops it with: ${woken.line}`;
  }
}

/** The same as data. */
export function wokenJson(woken: Woken): JsonObject {
  const { kind, ...rest } = woken;
  const clean = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [key, typeof value === "string" ? redactText(value) : value]),
  );
  return { outcome: kind, ...clean };
}
