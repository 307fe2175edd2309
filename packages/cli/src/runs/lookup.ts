import { didYouMean, type RunHost, type RunSummary, SluiceError } from "@sluice/core";
import { rootOf } from "@sluice/view";
import { openToRead, type ProjectPaths } from "../project/project-paths.ts";

/** Opens the store to look at it, for as long as `look` takes. */
export async function withStore<T>(place: ProjectPaths, look: (host: RunHost) => Promise<T>): Promise<T> {
  const host = await openToRead(place);
  try {
    return await look(host);
  } finally {
    await host.close();
  }
}

/** Runs that a mistyped id is compared with: the newest. */
const MOST_NAMES = 1_000;

/** A whole run. Throws Session `run_unknown` or `run_is_child`. */
export async function requireRun(host: RunHost, place: ProjectPaths, runId: string): Promise<RunSummary> {
  const known = await host.get(runId);
  if (known === undefined) {
    const close = didYouMean(
      runId,
      (await host.list({ limit: MOST_NAMES })).map((run) => run.runId),
    );
    const hint = close === undefined ? "" : ` Did you mean ${close}?`;
    throw new SluiceError(
      "Session",
      "run_unknown",
      `there is no run ${runId} in ${place.store}.${hint} sluice runs lists what is there`,
    );
  }
  if (known.parentId !== undefined) {
    const root = rootOf(runId);
    throw new SluiceError("Session", "run_is_child", `${runId} is a part of run ${root}; name that one`);
  }
  return known;
}
