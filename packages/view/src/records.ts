// Reading the journals of a run into its view, once or as they grow.
export { readRecord } from "./projection/read-run.ts";
export { type RunWatch, watchRun } from "./projection/watch-run.ts";
