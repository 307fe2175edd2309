import { type RunHost, type RunSummary, SluiceError } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import { rootOf } from "@sluice/view/words";
import { type ProjectPaths, storeOpener } from "../project/project-paths.ts";

/** Opens the store read-only while `read` runs. Throws Host `store_missing`. */
export async function withStore<T>(place: ProjectPaths, read: (host: RunHost) => Promise<T>): Promise<T> {
  const { sqliteHost } = await import("@sluice/sqlite");
  return await whileOpen(sqliteHost(place.store, { readOnly: true }), read);
}

/** Opens the store for writing while `use` runs; `adopt` is --adopt-store. */
export async function withWritableStore<T>(
  place: ProjectPaths,
  adopt: boolean | undefined,
  use: (host: RunHost) => Promise<T>,
): Promise<T> {
  return await whileOpen((await storeOpener(place, adopt))(), use);
}

async function whileOpen<T>(host: RunHost, use: (host: RunHost) => Promise<T>): Promise<T> {
  try {
    return await use(host);
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
