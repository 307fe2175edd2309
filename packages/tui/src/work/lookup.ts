import {
  didYouMean,
  type JsonObject,
  type RunHost,
  type RunSummary,
  readEvents,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";
import { openToRead, type Place } from "../project/place.ts";

/** Opens the store to look at it, for as long as `look` takes. */
export async function withStore<T>(place: Place, look: (host: RunHost) => Promise<T>): Promise<T> {
  const host = await openToRead(place);
  try {
    return await look(host);
  } finally {
    await host.close();
  }
}

/** Runs that a mistyped id is compared with: the newest. */
const MOST_NAMES = 1_000;

/** A whole run. Throws Session `run_unknown` or `run_is_child`. */
export async function requireRun(host: RunHost, place: Place, runId: string): Promise<RunSummary> {
  const known = await host.get(runId);
  if (known === undefined) {
    const close = didYouMean(
      runId,
      (await host.list({ limit: MOST_NAMES })).map((run) => run.runId),
    );
    const hint = close === undefined ? "" : ` Did you mean ${close}?`;
    throw new SluiceError(
      "Session",
      "run_unknown",
      `there is no run ${runId} in ${place.store}.${hint} sluice runs lists what is there`,
    );
  }
  if (known.parentId !== undefined) {
    const root = rootOf(runId);
    throw new SluiceError("Session", "run_is_child", `${runId} is a part of run ${root}; name that one`);
  }
  return known;
}

/** Every event of a run and its children so far. */
export async function eventsOf(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, { children: true })) events.push(event);
  return events;
}

/** What `run.started` says. Throws Host `journal_damaged` when it is not there. */
export async function startedWith(host: RunHost, runId: string): Promise<JsonObject> {
  // It stands in the first record, however long the run became.
  for (const record of await host.records(runId, 0, 1))
    for (const event of readEvents(runId, record)) if (event.type === "run.started") return event.data;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}

export function rootOf(runId: string): string {
  return runId.split("/", 1)[0] ?? runId;
}
