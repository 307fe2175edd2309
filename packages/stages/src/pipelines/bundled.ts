import type { AnyPipeline } from "@sluice/core";
import { codeReview } from "./code-review.ts";
import { fixTests } from "./fix-tests.ts";

/** The pipelines that come with Sluice, by name. */
export function bundledPipelines(): ReadonlyMap<string, AnyPipeline> {
  return new Map<string, AnyPipeline>([codeReview, fixTests].map((pipeline) => [pipeline.id, pipeline]));
}
