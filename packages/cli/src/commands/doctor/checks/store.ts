import type { RunCounts } from "@sluice/sqlite";
import { count } from "@sluice/view/words";
import type { ProjectPaths } from "../../../project/project-paths.ts";
import { blocking, type Check, ok, warning } from "./check.ts";

const LOW_SPACE_BYTES = 100 * 1024 * 1024;

/** Checks the store without creating or changing it. */
export async function checkStore({ store }: ProjectPaths): Promise<readonly Check[]> {
  const { inspectSqliteStore, countRuns, serviceOf } = await import("@sluice/sqlite");
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
  if (exists) checks.push(...worker(countRuns(store, Date.now()), serviceOf(store)));
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

/** Who wakes the runs that sleep. */
function worker({ due, sleeping }: RunCounts, service: string | undefined): readonly Check[] {
  if (service !== undefined)
    return [ok("worker", `${service} serves it; ${count(sleeping, "run sleeps", "runs sleep")}`)];
  const fix = "sluice wake continues what is due; sluice serve, or sluice wake in a crontab, wakes runs at their time";
  if (due > 0) return [warning("worker", `${count(due, "run is due", "runs are due")}, and nothing serves it`, fix)];
  if (sleeping > 0)
    return [warning("worker", `${count(sleeping, "run sleeps", "runs sleep")}, and nothing serves it`, fix)];
  return [];
}
