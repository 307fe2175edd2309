import type { ProjectPaths } from "../../../project/project-paths.ts";
import { blocking, type Check, ok, warning } from "./check.ts";

const LITTLE_BYTES = 100 * 1024 * 1024;

/** The place where runs are kept. Makes and changes nothing. */
export async function checkStore({ store }: ProjectPaths): Promise<readonly Check[]> {
  const { inspectSqliteStore } = await import("@sluice/sqlite");
  const { exists, fault, version, ownMachine, liveOwners, filesystem, freeBytes } = inspectSqliteStore(store);
  // Its message says how to mend it.
  if (fault !== undefined) return [blocking("store", fault.message)];
  const where = filesystem === undefined ? store : `${store} (${filesystem})`;
  const checks: Check[] = [];
  if (!exists) checks.push(ok("store", `${where} is made with the first run`));
  else if (ownMachine === false)
    checks.push(
      blocking(
        "store",
        `${where} belongs to another machine, where its runs may still be at work`,
        "if it was moved here for good: sluice run … --adopt-store",
      ),
    );
  else checks.push(ok("store", `${where}, version ${version}, of this machine`));
  if (liveOwners > 0)
    checks.push(
      ok("at work", liveOwners === 1 ? "a process works on runs of it" : `${liveOwners} processes work on runs of it`),
    );
  if (freeBytes < LITTLE_BYTES)
    checks.push(
      warning(
        "disk",
        `${Math.floor(freeBytes / 1024 / 1024)} MB are free for ${store}`,
        "make room: a run whose journal cannot be written stops",
      ),
    );
  return checks;
}
