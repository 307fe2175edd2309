import { join } from "node:path";

const FIXTURES = join(import.meta.dirname, "..", "fixtures");
/** Recorded cases, a folder each. */
export const GOLDEN = join(FIXTURES, "golden");
/** The files with the pipelines of their runs. */
export const PIPELINES = ["pipelines.ts", "release.ts", "directed.ts", "waits.ts", "nested.ts"] as const;

/** The file of a pipeline. */
export function fileOf(pipeline: string): (typeof PIPELINES)[number] {
  if (pipeline === "sleeping" || pipeline === "asked") return "waits.ts";
  if (pipeline === "nested" || pipeline === "written") return "nested.ts";
  if (pipeline === "directed" || pipeline === "routed") return "directed.ts";
  return pipeline === "release" ? "release.ts" : "pipelines.ts";
}

/** One of them, recorded by journal version 1. */
export const VERSION_1 = join(FIXTURES, "golden-v1");
