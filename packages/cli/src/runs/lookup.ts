import { type RunHost, type RunSummary, SluiceError } from "@sluice/core";
import { didYouMean, rootRunId } from "@sluice/core/runtime";
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

/** Candidates that an error lists. */
const MAX_NAMES = 5;

/**
 * Finds a root run by its id or by a beginning that no other run has. `listing` says where runs are listed. Throws Session
 * `run_unknown`, with the candidates if there are several, or `run_is_child`.
 */
export async function requireRun(
  host: RunHost,
  { store }: Pick<ProjectPaths, "store">,
  runId: string,
  listing = "See sluice runs.",
): Promise<RunSummary> {
  const exact = await host.get(runId);
  // All runs are listed only for an abbreviated id: a store may hold very many.
  const others = exact === undefined ? await host.list() : [];
  const fitting = runId === "" ? [] : others.filter((run) => run.runId.startsWith(runId));
  const [first, ...more] = fitting;
  const known = exact ?? (more.length === 0 ? first : undefined);
  if (known === undefined) {
    const why = first === undefined ? noneText(runId, store, others) : severalText(runId, store, fitting);
    throw new SluiceError("Session", "run_unknown", `${why} ${listing}`);
  }
  if (known.parentId !== undefined) {
    const root = rootRunId(runId);
    throw new SluiceError("Session", "run_is_child", `${runId} is part of run ${root}; use that id`);
  }
  return known;
}

function severalText(runId: string, store: string, fitting: readonly RunSummary[]): string {
  const names = fitting.slice(0, MAX_NAMES).map((run) => run.runId);
  const left = fitting.length - names.length;
  const more = left === 0 ? "" : ` and ${left} more`;
  return `${fitting.length} runs in ${store} begin with ${runId}: ${names.join(", ")}${more}.`;
}

function noneText(runId: string, store: string, others: readonly RunSummary[]): string {
  const close = didYouMean(
    runId,
    others.map((run) => run.runId),
  );
  return `there is no run ${runId} in ${store}.${close === undefined ? "" : ` Did you mean ${close}?`}`;
}
