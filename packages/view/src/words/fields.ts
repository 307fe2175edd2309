import { field, type Json, type Usage } from "@sluice/core";

/** The usage an event tells of. */
export function usageAt(data: Json | undefined): Usage {
  const usage = field(data, "usage");
  const more = ["costUsd", "unpricedCalls", "unmeteredCalls"].filter((key) => field(usage, key) !== undefined);
  return {
    inputTokens: numberAt(usage, "inputTokens"),
    outputTokens: numberAt(usage, "outputTokens"),
    ...Object.fromEntries(more.map((key) => [key, numberAt(usage, key)])),
  };
}

/** A text member, or '' where there is none. */
export function textAt(value: Json | undefined, key: string): string {
  const member = field(value, key);
  return typeof member === "string" ? member : "";
}

export function numberAt(value: Json | undefined, key: string): number {
  const member = field(value, key);
  return typeof member === "number" ? member : 0;
}

/** Where a run's past comes from, in words, by its `run.started`; '' for a run that began by itself. */
export function forkedFrom(started: Json | undefined): string {
  const from = field(started, "forkedFrom");
  return from === undefined ? "" : `forked from ${textAt(from, "runId")} before ${textAt(from, "execution")}`;
}
