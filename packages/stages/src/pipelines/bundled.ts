import type { AnyPipeline } from "@sluice/core";

/** Loaders of the bundled pipelines, by name. */
export function bundledPipelines(): ReadonlyMap<string, () => Promise<AnyPipeline>> {
  return new Map<string, () => Promise<AnyPipeline>>([
    ["codeReview", async () => (await import("./code-review.ts")).codeReview],
    ["fixTests", async () => (await import("./fix-tests.ts")).fixTests],
  ]);
}
