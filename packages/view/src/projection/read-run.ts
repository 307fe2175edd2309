import { type JsonObject, type RunHost, readEvents, SluiceError, type SluiceEvent } from "@sluice/core";

/** Every event of a run and its children so far. */
export async function eventsOf(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, { children: true })) events.push(event);
  return events;
}

/** What `run.started` says. Throws Host `journal_damaged` when it is not there. */
export async function readRunStarted(host: RunHost, runId: string): Promise<JsonObject> {
  // It stands in the first record, however long the run became.
  for (const record of await host.records(runId, 0, 1))
    for (const event of readEvents(runId, record)) if (event.type === "run.started") return event.data;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}

export function rootOf(runId: string): string {
  return runId.split("/", 1)[0] ?? runId;
}
