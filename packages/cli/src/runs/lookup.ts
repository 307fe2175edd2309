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

/** The newest runs, with which a shortened or mistyped id is compared. */
const MAX_NAMES = 1_000;

/** Finds a root run by its id or by a beginning that no other run has. Throws Session `run_unknown` or `run_is_child`. */
export async function requireRun(host: RunHost, place: ProjectPaths, runId: string): Promise<RunSummary> {
  const exact = await host.get(runId);
  const others = exact === undefined ? await host.list({ limit: MAX_NAMES }) : [];
  const fitting = runId === "" ? [] : others.filter((run) => run.runId.startsWith(runId));
  const known = exact ?? (fitting.length === 1 ? fitting[0] : undefined);
  if (known === undefined && fitting.length > 1) {
    const names = fitting.slice(0, 5).map((run) => run.runId);
    const more = fitting.length > names.length ? ", …" : "";
    const message = `several runs in ${place.store} begin with ${runId}: ${names.join(", ")}${more}`;
    throw new SluiceError("Session", "run_unknown", message);
  }
  if (known === undefined) {
    const close = didYouMean(
      runId,
      others.map((run) => run.runId),
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
