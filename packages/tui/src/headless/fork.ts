import { boundariesOf, type JsonObject, type RunHost, redactText, SluiceError } from "@sluice/core";
import { boundaryBefore, type ChangedSince, changedSince } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import type { Place } from "../project/place.ts";
import { count } from "../words.ts";
import type { CommandContext } from "../work/context.ts";
import { requireRun, startedWith, withStore } from "../work/lookup.ts";
import type { RunSoFar } from "../work/resume-plan.ts";
import type { WorkFlags } from "./flags.ts";
import { projectsHere } from "./projects-here.ts";
import { goOn } from "./resume.ts";

export interface ForkCommand {
  readonly runId: string;
  readonly flags: WorkFlags & {
    /** The execution before which the new run leaves the old one. */
    readonly from?: string;
    readonly allowChanged?: boolean;
  };
}

/** `sluice fork`: a new run with the past of another, which goes on from there with models and tools. */
export async function fork({ runId, flags }: ForkCommand, context: CommandContext): Promise<number> {
  refuseInsideRun(readSettings(context.env), "fork");
  const projects = projectsHere(flags, context);
  const at = await projects.place();
  const { soFar, execution, records, since } = await withStore(at, (host) => readPast(host, at, runId, flags.from));
  const told = [`forks ${runId} before ${execution}: ${count(records, "record")} of its past`, ...stays(runId, since)];
  const changed: JsonObject = { files: since.files.map(redactText), unwatched: since.unwatched };
  const beside = { forkedFrom: { runId, execution, changedSince: changed } };
  return await goOn({ runId, flags, from: execution }, soFar, { at, projects }, context, { told, beside });
}

interface Past {
  readonly soFar: RunSoFar;
  readonly execution: string;
  readonly records: number;
  readonly since: ChangedSince;
}

/** Of a run in whatever state it is, without touching it. */
async function readPast(host: RunHost, place: Place, runId: string, from: string | undefined): Promise<Past> {
  await requireRun(host, place, runId);
  const journals = await host.journal(runId);
  if (from === undefined) {
    const ids = boundariesOf(journals).map(({ executionId }) => executionId);
    const there = ids.length === 0 ? "it has entered none yet" : ids.join(", ");
    throw new SluiceError("Validation", "usage", `say with --from before which execution ${runId} is forked: ${there}`);
  }
  const { boundary } = boundaryBefore(journals, from);
  // Nothing of the old run is shown again, and nothing of it is open in the new one.
  const soFar = { data: await startedWith(host, runId), past: [], open: [] };
  return { soFar, execution: boundary.executionId, records: boundary.before, since: changedSince(journals, boundary) };
}

/** Files are listed up to here; the report of the old run has all. */
const MOST_FILES = 20;

/** What no fork takes back. */
function stays(runId: string, { files, unwatched }: ChangedSince): readonly string[] {
  const more = files.length > MOST_FILES ? `, and ${files.length - MOST_FILES} more` : "";
  const named = files.slice(0, MOST_FILES).join(", ");
  return [
    files.length === 0
      ? "files are as they are now"
      : `files are as they are now: what ${runId} changed after that is not taken back: ${named}${more}`,
    ...(unwatched === 0
      ? []
      : [`${count(unwatched, "call")} of ${runId} after that may have changed other things, and nobody watched`]),
  ];
}
