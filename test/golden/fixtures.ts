import { join } from "node:path";

const FIXTURES = join(import.meta.dirname, "..", "fixtures");
/** Recorded cases, a folder each. */
export const GOLDEN = join(FIXTURES, "golden");
/** What their runs are runs of. */
export const PIPELINES = join(GOLDEN, "pipelines.ts");
/** One of them, as the first version of journals had it. */
export const VERSION_1 = join(FIXTURES, "golden-v1");
