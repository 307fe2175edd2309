// `@sluice/stages/pipelines`: the bundled pipelines. A separate entry, because building them loads zod.
export { codeReview } from "./pipelines/code-review.ts";
export { fixTests } from "./pipelines/fix-tests.ts";
