import { field, parseJson } from "../base/json.ts";
import type { JournalRecord } from "./seam.ts";

/** The id of a child's run. A key holds no slash, so that an id names one child only. */
export function childRunId(parentId: string, stepId: string, key: string): string {
  return `${parentId}/${stepId}/${key}`;
}

/** The keys in a fork's open record; undefined for another step's. */
export function childKeys({ phase, value }: JournalRecord): readonly string[] | undefined {
  if (phase !== "open" || !value.startsWith('{"fork":[')) return undefined;
  const read = parseJson(value);
  const keys = read.ok ? field(read.value, "fork") : undefined;
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : undefined;
}

/** The step ids of records that are no steps: what happens to a run from outside its program. */
export const LIFECYCLE_STEP = {
  start: "start",
  resume: "resume",
  suspend: "suspend",
  /** Ends the past that was copied from another run: what follows is the run's own. */
  forked: "forked",
  /** Who asked for the run's end, when and why; just before that end. */
  cancel: "cancel",
  /** The program's own end. */
  end: "end",
  /** The end of a run that was cancelled while nobody worked on it; holds the heads of everything below it. */
  closed: "closed",
} as const;

/** Life records have no place among the steps. */
export const NO_ORDINAL = -1;

export function isEnd({ phase, stepId }: Pick<JournalRecord, "phase" | "stepId">): boolean {
  return phase === "life" && (stepId === LIFECYCLE_STEP.end || stepId === LIFECYCLE_STEP.closed);
}
