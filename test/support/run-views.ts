import type { Json, RunHost } from "@sluice/core";
import { type Script, type Session, scriptedModel } from "@sluice/stages";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import { RecordReader } from "../../packages/view/src/projection/read-run.ts";
import { type ReadRecord, reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { session, type TestSession, type TestSessionOptions } from "./run-kit.ts";

/** A session whose model says what a script says, and whose requests stay open until someone answers. */
export function scripted(stages: Script["stages"], options: TestSessionOptions = {}): TestSession {
  const model = scriptedModel({ stages }, options.clock === undefined ? {} : { clock: options.clock });
  return session({ model, wait: true, ...options });
}

/** Everything a run has recorded so far, as a watch reads it. */
export async function readRecords(host: RunHost, runId: string): Promise<readonly ReadRecord[]> {
  const records: ReadRecord[] = [];
  const reader = new RecordReader({
    host,
    runId,
    onRecord: (record) => records.push(record),
    onError: (fault) => {
      throw fault;
    },
  });
  await reader.read();
  return records;
}

export function viewOf(runId: string, records: readonly ReadRecord[]): RunView {
  const reducer = reduceRun(runId);
  for (const record of records) reducer.record(record);
  return reducer.view();
}

/** A view as plain data, with its lists spread out. */
export function plain({ log, executions, spans, approvals, ...view }: RunView): Json {
  return JSON.parse(
    JSON.stringify({
      ...view,
      log: [...log],
      spans: [...spans],
      approvals: [...approvals],
      executions: executions.map(({ items, ...execution }) => ({ ...execution, items: [...items] })),
    }),
  );
}

/** The same without the order in which items of different runs were reduced. */
export function unordered(view: RunView): Json {
  const { log, spans, decisions, routes } = view;
  const sorted = [log, spans, decisions, routes].map((list) => [...list].map((one) => JSON.stringify(one)).sort());
  return [
    plain({
      ...view,
      last: "",
      log: new ListBuilder<never>().view(),
      spans: new ListBuilder<never>().view(),
      decisions: [],
      routes: [],
    }),
    sorted,
  ];
}

export function textOf(lines: readonly Line[]): string {
  return lines.map((line) => line.map(({ text }) => text).join("")).join("\n");
}

/** Answers the open requests of a run, whatever process owns it. */
export async function answerAll(
  { host }: Pick<Session, "host">,
  runId: string,
  answer: { readonly kind: string; readonly [key: string]: Json },
): Promise<number> {
  const open = await host.requests(runId);
  for (const request of open) {
    const { requestId, digest } = request;
    await host.signal(request.runId, {
      name: `request/${requestId}`,
      payload: { ...answer, digest },
      digest,
      by: "ann",
    });
  }
  return open.length;
}
