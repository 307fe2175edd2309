import type { RunJournal, SluiceEvent } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { placeOf } from "./watched-store.ts";

/** What journals say that was done: no process that reads them may do it again. */
export function factsOf(journals: readonly RunJournal[]): ReadonlySet<string> {
  const facts = new Set<string>();
  for (const { runId, records } of journals) {
    const place = placeOf(runId);
    for (const record of records) {
      if (record.phase === "done") facts.add(`step ${place} ${record.stepId}`);
      for (const { type, executionId = "", attempt = 1, data } of readEvents(runId, record)) {
        if (type === "call.finished" || type === "call.decided")
          facts.add(`${type} ${place} ${executionId}/a${attempt} ${String(data.callId)}`);
        // A call that was refused is over.
        if (type === "call.decided" && data.verdict === "refused")
          facts.add(`call.finished ${place} ${executionId}/a${attempt} ${String(data.callId)}`);
        if (type === "grant.answered" || type === "request.answered")
          facts.add(`answered ${place} ${String(data.requestId)}`);
      }
    }
  }
  return facts;
}

/** A call of a tool, with how it ended where it did. */
export interface CallFact {
  readonly tool: string;
  readonly callId: string;
  readonly outcome?: string;
}

/** Calls that were announced and have no end. */
export function unfinishedCalls(journals: readonly RunJournal[]): readonly CallFact[] {
  return journals.flatMap(({ runId, records }) => {
    const last = records.filter(({ phase }) => phase !== "lifecycle").at(-1);
    if (last?.phase !== "open") return [];
    return readEvents(runId, last).flatMap(({ type, executionId, data }) =>
      type === "call.started" && data.tool !== undefined
        ? [{ tool: String(data.tool), callId: `${executionId} ${String(data.callId)}` }]
        : [],
    );
  });
}

export function finishedCalls(journals: readonly RunJournal[]): readonly CallFact[] {
  return journals.flatMap(({ runId, records }) =>
    records
      .flatMap((record) => readEvents(runId, record))
      .filter(({ type }) => type === "call.finished")
      .map(({ executionId, data }) => ({
        tool: String(data.tool),
        callId: `${executionId} ${String(data.callId)}`,
        outcome: String(data.outcome),
      })),
  );
}

/** What a journal says that happened, in order, without times and without how often the run was resumed. */
export function happenings({ runId, records }: RunJournal): readonly string[] {
  const described = ({ type, executionId = "", attempt = 1, data }: SluiceEvent): string => {
    const { phase, turn, callId, requestId, choice, status, verdict, answer, text, fork } = data;
    const what = { phase, turn, try: data.try, callId, requestId, choice, status, verdict, answer, text, fork };
    return `${placeOf(runId)} ${type} ${executionId}/a${attempt} ${JSON.stringify(what)}`;
  };
  return records
    .flatMap((record) => readEvents(runId, record))
    .filter(({ type }) => type !== "run.resumed")
    .map(described);
}
