import type { AnyPipeline } from "@sluice/core";

/** The pipeline of the demo, without the others. */
export async function loadCodeReview() {
  return (await import("./code-review.ts")).codeReview;
}

/** Loaders of the bundled pipelines, by name. */
export function bundledPipelines(): ReadonlyMap<string, () => Promise<AnyPipeline>> {
  return new Map<string, () => Promise<AnyPipeline>>([
    ["codeReview", loadCodeReview],
    ["fixTests", async () => (await import("./fix-tests.ts")).fixTests],
  ]);
}
