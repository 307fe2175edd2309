import { join } from "node:path";

const FIXTURES = join(import.meta.dirname, "..", "fixtures");
/** Recorded cases, a folder each. */
export const GOLDEN = join(FIXTURES, "golden");
/** The pipelines of their runs. */
export const PIPELINES = join(GOLDEN, "pipelines.ts");
/** One of them, recorded by journal version 1. */
export const VERSION_1 = join(FIXTURES, "golden-v1");
