import { type PrunedRun, type PruneQuery, systemClock } from "@sluice/core";
import { removeOutputs } from "@sluice/stages/tools";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { table } from "@sluice/view/text";
import { count, moment, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { usageError, write } from "../../output/output.ts";
import { withStore, withWritableStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type PruneFlags = CommonFlags & { readonly olderThan?: number; readonly keep?: number; readonly dryRun?: boolean };

/** `sluice prune`: removes finished runs by age, by count, or by both. */
export async function prune(context: CommandContext, flags: PruneFlags): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "prune");
  const { olderThan, keep, dryRun = false } = flags;
  if (olderThan === undefined && keep === undefined)
    throw usageError("choose the runs to remove with --older-than <age>, --keep <n>, or both");
  const query: PruneQuery = {
    dryRun,
    ...(olderThan === undefined ? {} : { endedBefore: systemClock.now() - olderThan }),
    ...(keep === undefined ? {} : { keep }),
  };
  const place = await projectsHere(flags, context).place();
  // Read first: opening for writing would create a missing store.
  let pruned = await withStore(place, (host) => host.prune({ ...query, dryRun: true }));
  if (!dryRun && pruned.length > 0) pruned = await withWritableStore(place, false, (host) => host.prune(query));
  // Only the records that are gone name these files.
  if (!dryRun)
    await removeOutputs(
      place.cwd,
      pruned.map(({ runId }) => runId),
    );
  write(flags.outputFormat, terminal, {
    json: { store: place.store, dryRun },
    items: { key: "runs", each: pruned.map((run) => ({ ...run })) },
    text: () => textOf(pruned, dryRun, place.store),
  });
  return EXIT.completed;
}

function textOf(pruned: readonly PrunedRun[], dryRun: boolean, store: string): readonly string[] {
  if (pruned.length === 0) return [`${oneLine(store, 1_000)} has no finished runs to remove`];
  const rows = pruned.map(({ runId, status, endedAt }) => [oneLine(runId), status, moment(endedAt)]);
  const records = pruned.reduce((sum, run) => sum + run.records, 0);
  const total = `${count(pruned.length, "run")} with ${count(records, "record")}`;
  return [
    ...table([["RUN", "STATUS", "ENDED"], ...rows]),
    dryRun ? `${total} would be removed (dry run)` : `removed ${total}`,
  ];
}
