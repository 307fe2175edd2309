import { field, parseJson } from "../../base/json.ts";
import type { JournalRecord } from "../seam.ts";

/** The id of a child's run. A key holds no slash, so that an id names one child only. */
export function childRunId(parentId: string, stepId: string, key: string): string {
  return `${parentId}/${stepId}/${key}`;
}

/** The keys in a fork's open record; undefined for another step's. */
export function forkKeys({ phase, value }: JournalRecord): readonly string[] | undefined {
  if (phase !== "open" || !value.startsWith('{"fork":[')) return undefined;
  const read = parseJson(value);
  const keys = read.ok ? field(read.value, "fork") : undefined;
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : undefined;
}
