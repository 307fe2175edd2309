import type { ProjectPaths } from "../../../project/project-paths.ts";
import { blocking, type Check, ok, warning } from "./check.ts";

const LOW_SPACE_BYTES = 100 * 1024 * 1024;

/** Checks the store without creating or changing it. */
export async function checkStore({ store }: ProjectPaths): Promise<readonly Check[]> {
  const { inspectSqliteStore } = await import("@sluice/sqlite");
  const { exists, fault, version, ownMachine, liveOwners, filesystem, freeBytes } = inspectSqliteStore(store);
  // The message includes the fix.
  if (fault !== undefined) return [blocking("store", fault.message)];
  const where = filesystem === undefined ? store : `${store} (${filesystem})`;
  const checks: Check[] = [];
  if (!exists) checks.push(ok("store", `${where} is created by the first run`));
  else if (ownMachine === false)
    checks.push(
      blocking(
        "store",
        `${where} belongs to another machine, where its runs may still be active`,
        "if it was moved here permanently, use sluice run --adopt-store",
      ),
    );
  else checks.push(ok("store", `${where}, version ${version}, of this machine`));
  if (liveOwners > 0)
    checks.push(
      ok("active", `${liveOwners === 1 ? "one process executes" : `${liveOwners} processes execute`} runs of it`),
    );
  if (freeBytes < LOW_SPACE_BYTES)
    checks.push(
      warning(
        "disk",
        `only ${Math.floor(freeBytes / 1024 / 1024)} MB are free for ${store}`,
        "free some space: a run stops if its journal cannot be written",
      ),
    );
  return checks;
}
