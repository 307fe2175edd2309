import { type RunHost, type RunSummary, SluiceError } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import { rootOf } from "@sluice/view/words";
import { openToRead, type ProjectPaths } from "../project/project-paths.ts";

/** Opens the store read-only while `read` runs. */
export async function withStore<T>(place: ProjectPaths, read: (host: RunHost) => Promise<T>): Promise<T> {
  const host = await openToRead(place);
  try {
    return await read(host);
  } finally {
    await host.close();
  }
}

/** The newest runs, with which a mistyped id is compared. */
const MAX_NAMES = 1_000;

/** Finds a root run. Throws Session `run_unknown` or `run_is_child`. */
export async function requireRun(host: RunHost, place: ProjectPaths, runId: string): Promise<RunSummary> {
  const known = await host.get(runId);
  if (known === undefined) {
    const close = didYouMean(
      runId,
      (await host.list({ limit: MAX_NAMES })).map((run) => run.runId),
    );
    const hint = close === undefined ? "" : ` Did you mean ${close}?`;
    throw new SluiceError(
      "Session",
      "run_unknown",
      `there is no run ${runId} in ${place.store}.${hint} See sluice runs.`,
    );
  }
  if (known.parentId !== undefined) {
    const root = rootOf(runId);
    throw new SluiceError("Session", "run_is_child", `${runId} is part of run ${root}; use that id`);
  }
  return known;
}
