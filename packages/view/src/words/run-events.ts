import { type JsonObject, type RunHost, SluiceError, type SluiceEvent } from "@sluice/core";
import { readEvents } from "@sluice/core/host";

/** All recorded events of a run and the runs below it. */
export async function eventsOf(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, { children: true })) events.push(event);
  return events;
}

/** The data of `run.started`. Throws Host `journal_damaged` if it is absent. */
export async function readRunStarted(host: RunHost, runId: string): Promise<JsonObject> {
  for (const record of await host.records(runId, 0, 1))
    for (const event of readEvents(runId, record)) if (event.type === "run.started") return event.data;
  throw new SluiceError("Host", "journal_damaged", `run ${runId} has no run.started event`);
}
