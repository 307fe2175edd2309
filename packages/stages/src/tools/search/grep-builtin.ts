import { Worker } from "node:worker_threads";
import type { ToolCall } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { fault } from "../files/results.ts";
import { takeTurns } from "../turns.ts";
import { compileGlob, type PathMatcher } from "./glob-match.ts";
import { type GrepEnd, type GrepQuery, type GrepSearch, SEARCH_TIMEOUT_MS } from "./grep-search.ts";
import type { GrepReport, GrepWork } from "./grep-worker.ts";
import { walk } from "./walk.ts";

const MAX_FILES = 100_000;
const MEMORY_MB = 256;

/**
 * Searches without ripgrep, with JavaScript's regular expressions. A worker thread runs them, since an expression that does
 * not end can only be stopped from outside.
 */
export async function searchBuiltIn(search: GrepSearch): Promise<GrepEnd> {
  const { real, isFolder, query, call } = search;
  const { files, complete } = isFolder
    ? await filesBelow(real, query, call)
    : { files: [{ path: real, name: "" }], complete: true };
  const end = await searchFiles({ files, query }, search);
  return complete ? end : { ...end, incomplete: true };
}

async function filesBelow(
  start: string,
  query: GrepQuery,
  call: ToolCall,
): Promise<{ files: GrepWork["files"]; complete: boolean }> {
  const { length, match } = globFilter(query.glob);
  const turns = takeTurns(call.signal);
  const files: GrepWork["files"][number][] = [];
  let complete = true;
  let depth: number | undefined;
  const entries = walk({
    workspace: call.workspace,
    start,
    nodeModules: true,
    signal: call.signal,
    unreadable: () => (complete = false),
  });
  for await (const { path, names, kind } of entries) {
    // The first entry is a direct child of the folder.
    depth ??= names.length - 1;
    const below = names.slice(depth);
    if (kind !== "file") continue;
    const turn = turns.spend(length * path.length);
    if (turn !== undefined) await turn;
    if (match(below)) files.push({ path, name: below.join("/") });
    if (files.length >= MAX_FILES) return { files, complete: false };
  }
  return { files, complete };
}

/** Like ripgrep, matches a glob without a slash against names in any folder. */
function globFilter(glob: string | undefined): { readonly length: number; readonly match: PathMatcher } {
  if (glob === undefined) return { length: 0, match: () => true };
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
