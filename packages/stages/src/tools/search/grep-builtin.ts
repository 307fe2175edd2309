import { Worker } from "node:worker_threads";
import { messageOf } from "@sluice/core/runtime";
import { fault } from "../files/results.ts";
import { compileGlob, type PathMatcher } from "./glob-match.ts";
import { type GrepEnd, type GrepSearch, SEARCH_TIMEOUT_MS } from "./grep-search.ts";
import type { GrepReport, GrepWork } from "./grep-worker.ts";
import { findFiles } from "./walk.ts";

const MAX_FILES = 100_000;
const MEMORY_MB = 256;

/**
 * Searches without ripgrep, with JavaScript's regular expressions. A worker thread runs them, since an expression that does
 * not end can only be stopped from outside.
 */
export async function searchBuiltIn(search: GrepSearch): Promise<GrepEnd> {
  const { real, isFolder, query, call } = search;
  if (!isFolder) return await searchFiles({ files: [{ path: real, name: "" }], query }, search);
  const glob = query.glob === undefined ? {} : { glob: globFilter(query.glob) };
  const { workspace, signal } = call;
  const found = await findFiles({
    workspace,
    start: real,
    nodeModules: true,
    signal,
    most: MAX_FILES,
    links: false,
    ...glob,
  });
  const files = found.files.map(({ path, names }) => ({ path, name: names.join("/") }));
  const end = await searchFiles({ files, query }, search);
  return found.more || found.stopped || found.unreadable > 0 ? { ...end, incomplete: true } : end;
}

/** Like ripgrep, matches a glob without a slash against names in any folder. */
function globFilter(glob: string): { readonly length: number; readonly match: PathMatcher } {
  const compiled = compileGlob(glob.includes("/") ? glob.replace(/^\//, "") : `**/${glob}`);
  if (!compiled.ok)
    throw fault("invalid_pattern", `Grep cannot use the glob ${JSON.stringify(glob)}: ${compiled.reason}.`);
  return compiled;
}

function searchFiles(work: GrepWork, { call: { signal }, clock, onHit }: GrepSearch): Promise<GrepEnd> {
  return new Promise((resolve, reject) => {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new Worker(new URL(`./grep-worker.${extension}`, import.meta.url), {
      workerData: work,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    const settle = (act: () => void): void => {
      cancelTimeout();
      signal.removeEventListener("abort", onAbort);
      worker.terminate().then(act, reject);
    };
    const stop = (end: GrepEnd): void => settle(() => resolve(end));
    const fail = (error: Error): void => settle(() => reject(error));
    const onAbort = (): void => fail(fault("cancelled", "The search was cancelled before it finished."));
    const cancelTimeout = clock.after(SEARCH_TIMEOUT_MS, () => stop({ stopped: "timeout", incomplete: true }));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    let enough = false;
    worker.on("message", (report: GrepReport) => {
      if (enough) return;
      if (report.kind === "hits") {
        enough = !report.hits.every(onHit);
        if (enough) stop({ stopped: "enough", incomplete: false });
      } else if (report.kind === "done") {
        stop({ stopped: "finished", incomplete: report.incomplete });
      } else {
        fail(fault("invalid_pattern", `${report.message}. Use the syntax of JavaScript regular expressions.`));
      }
    });
    worker.once("error", (thrown) => fail(fault("search_failed", `The search failed: ${messageOf(thrown)}.`)));
  });
}
