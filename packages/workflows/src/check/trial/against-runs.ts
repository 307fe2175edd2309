// A trial of a pipeline on recorded runs, before it is used.

import type { JsonObject, PipelineSpec, RunJournal } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { pipelinesWithin, visibleLine } from "@sluice/core/runtime";
import { groundOf, type TrialCall, tryCalls } from "./calls.ts";
import { type TrialRoute, tryRoutes } from "./routes.ts";

/** What a pipeline would have made of one run. */
export interface RunTrial {
  readonly runId: string;
  /** The pipeline that ran. */
  readonly pipeline: string;
  readonly calls: readonly TrialCall[];
  /** Calls that could not be judged. */
  readonly unjudged: number;
  /** The decisions that would have been others. */
  readonly routes: readonly TrialRoute[];
  /** Decisions that were made again. */
  readonly decisions: number;
  /** States of the run that the pipeline lacks. */
  readonly unknownStates: readonly string[];
}

/**
 * Asks the envelopes of a pipeline about the tool calls that runs made, and its routes about what happened in them. `runs` holds,
 * for each run, the result of `host.journal(runId)`. Guard hooks are not asked; nothing is called, opened or written. A run whose
 * journal does not begin with its start is left out.
 */
export async function againstRuns(
  spec: PipelineSpec,
  runs: readonly (readonly RunJournal[])[],
): Promise<readonly RunTrial[]> {
  const trials: RunTrial[] = [];
  for (const journals of runs) {
    const root = journals.find(({ parentId }) => parentId === undefined);
    const start = root && startOf(root);
    if (root === undefined || start === undefined) continue;
    const ground = groundOf(start);
    const tried = journals.map((journal) => tryCalls(specOf(spec, journal), journal, ground));
    const routes = await tryRoutes(spec, journals, start.input ?? null);
    trials.push({
      runId: root.runId,
      pipeline: typeof start.pipeline === "string" ? start.pipeline : "",
      calls: tried.flatMap(({ calls }) => calls),
      unjudged: tried.reduce((sum, one) => sum + one.unjudged, 0),
      ...routes,
    });
  }
  return trials;
}

function startOf(journal: RunJournal): JsonObject | undefined {
  const [first] = journal.records;
  const events = first === undefined ? [] : readEvents(journal.runId, first);
  return events.find(({ type }) => type === "run.started")?.data;
}

/** A child may be a run of a pipeline that this one invokes. */
function specOf(spec: PipelineSpec, journal: RunJournal): PipelineSpec {
  if (journal.parentId === undefined) return spec;
  const { pipeline } = startOf(journal) ?? {};
  return pipelinesWithin(spec).find(({ id }) => id === pipeline) ?? spec;
}

/** Calls and routes that are listed; the counts are of all. */
const MOST_LISTED = 50;

/** The trials as people read them: what would change, run by run, and the counts. One entry is one line of text. */
export function trialLines(trials: readonly RunTrial[]): readonly string[] {
  const lines = trials.flatMap(({ runId, calls, routes, unjudged, decisions, unknownStates }) => {
    const changed = calls.filter((call) => call.changed);
    const head = `run ${runId}: ${numbered(changed.length, "call")} of ${calls.length} and ${numbered(routes.length, "route")} of ${decisions} would differ`;
    const left = changed.length + routes.length - MOST_LISTED;
    const listed = [...changed.map(callLine), ...routes.map(routeLine)].slice(0, MOST_LISTED);
    return [
      head,
      ...listed,
      ...(left > 0 ? [`  and ${left} more`] : []),
      ...(unjudged > 0 ? [`  ${numbered(unjudged, "call")} could not be judged`] : []),
      ...(unknownStates.length > 0 ? [`  states of the run that the workflow lacks: ${unknownStates.join(", ")}`] : []),
    ];
  });
  return lines.map(visibleLine);
}

function numbered(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function callLine({ executionId, callId, tool, args, was, now, why }: TrialCall): string {
  const because = why === undefined ? "" : ` (${why})`;
  return `  ${executionId} ${callId} ${tool}${args === undefined ? "" : ` ${args}`}: was ${was}, would be ${now}${because}`;
}

function routeLine({ executionId, on, was, now }: TrialRoute): string {
  return `  ${executionId} ${on}: led to ${was}, would lead to ${now}`;
}
