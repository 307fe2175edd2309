import assert from "node:assert/strict";
import { isSluiceError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { exportLines } from "../journal/audit/export.ts";
import { readExport } from "../journal/audit/read-export.ts";
import { verifyJournal } from "../journal/audit/verify.ts";
import { verifyExport } from "../journal/audit/verify-export.ts";
import type { EventDraft, SluiceEvent } from "../journal/events.ts";
import type {
  ChildRun,
  EventQuery,
  OpenRequest,
  ProgramEnd,
  RunChildrenOptions,
  RunEnd,
  RunHost,
  RunProgram,
  RunTask,
  SiblingEnd,
  StepRunner,
} from "../journal/seam.ts";
import type { HandClock } from "./hand-clock.ts";
import type { ConformanceHost } from "./harness.ts";

/** The environment of one fact: a new store, and a clock that the test advances. */
export interface World {
  readonly clock: HandClock;
  connect(): Promise<ConformanceHost>;
}
/** Facts by name; the function of a fact rejects if the fact does not hold. */
export type Facts = Readonly<Record<string, (world: World) => Promise<void>>>;

/** A point where the code under test waits until the test opens it. */
export interface Gate<T> {
  readonly passed: Promise<T>;
  open(value: T): void;
  /** Resolves at the first call of `wait`. */
  readonly reached: Promise<void>;
  /** Resolves when the gate is opened. */
  wait(): Promise<T>;
}

export function createGate<T = void>(): Gate<T> {
  const passed = Promise.withResolvers<T>();
  const reached = Promise.withResolvers<void>();
  return {
    passed: passed.promise,
    open: passed.resolve,
    reached: reached.promise,
    wait: () => {
      reached.resolve();
      return passed.promise;
    },
  };
}

const START: EventDraft = { type: "run.started", data: { pipeline: "conformance" } };

export async function start(
  host: RunHost,
  program: RunProgram,
  { runId = "r1", input = null }: { readonly runId?: string; readonly input?: Json } = {},
): Promise<RunTask> {
  return await host.start({ runId, input, events: [START], program });
}

export function completed(value: Json = null): ProgramEnd {
  return { status: "completed", value, events: [{ type: "run.finished", data: { status: "completed" } }] };
}
export function failed(value: Json = null): ProgramEnd {
  return { status: "failed", value, events: [{ type: "run.finished", data: { status: "failed" } }] };
}
/** The end of a program that reacts to its AbortSignal. */
export function cancelled(steps: StepRunner): ProgramEnd {
  const { reason } = steps.signal;
  const value = isSluiceError(reason) ? reason.message : null;
  return { status: "cancelled", value, events: [{ type: "run.finished", data: { status: "cancelled" } }] };
}

export function child(key: string, input: Json = key): ChildRun {
  return { key, input, events: [{ type: "run.started", data: { key } }] };
}
export function fanOutOptions(onFailure: RunChildrenOptions["onFailure"] = "settle"): RunChildrenOptions {
  return {
    onFailure,
    failed: (end) => end.status === "failed",
    open: { events: [{ type: "fanOut.started", data: { fanOut: "fan" } }] },
    joined: (ends) => [{ type: "fanOut.joined", data: { fanOut: "fan", outcomes: outcomesOf(ends) } }],
  };
}
function outcomesOf(ends: Readonly<Record<string, SiblingEnd>>): JsonObject[] {
  return Object.entries(ends).map(([name, { status, head }]) => ({ name, status, head }));
}
export function statusesOf(ends: Readonly<Record<string, RunEnd>>): Record<string, RunEnd["status"]> {
  return Object.fromEntries(Object.entries(ends).map(([key, end]) => [key, end.status]));
}

/** Opens a request, waits for its answer and records it. */
export async function ask(steps: StepRunner, requestId: string, digest = "d1", until?: number) {
  const body = { question: requestId, ...(until === undefined ? {} : { until }) };
  const data = { requestId, kind: "askUser", digest, body };
  await steps.run(`ask/${requestId}`, () => null, { open: { events: [{ type: "request.opened", data }] } });
  const answer = await steps.waitForSignal(`request/${requestId}`, { until });
  if (answer === undefined) return undefined;
  await steps.run(`answered/${requestId}`, (call) => {
    call.event({ type: "request.answered", data: { requestId, answer: "value", by: answer.by } });
    return null;
  });
  return answer;
}

/** The end of a run; fails if the run was suspended. */
export async function endOf(task: RunTask): Promise<RunEnd> {
  const settled = await task.settled;
  assert.ok("end" in settled, `${task.runId} was suspended`);
  return settled.end;
}

export async function rejects(work: Promise<unknown>, code: string, errorClass?: string): Promise<void> {
  await assert.rejects(work, (thrown) => {
    assert.ok(isSluiceError(thrown), `expected ${code}, not ${String(thrown)}`);
    assert.equal(thrown.code, code);
    if (errorClass !== undefined) assert.equal(thrown.class, errorClass);
    return true;
  });
}

/** The records of a run as `phase stepId`, in order. */
export async function recordsOf(host: RunHost, runId = "r1"): Promise<readonly string[]> {
  const journal = (await host.journal(runId)).find((each) => each.runId === runId);
  return (journal?.records ?? []).map((record) => `${record.phase} ${record.stepId}`);
}
/** The records of steps, without lifecycle records. */
export async function stepsOf(host: RunHost, runId = "r1"): Promise<readonly string[]> {
  return (await recordsOf(host, runId)).filter((record) => !record.startsWith("lifecycle "));
}

export async function eventsOf(host: RunHost, runId = "r1", query: EventQuery = {}): Promise<readonly SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of host.events(runId, query)) events.push(event);
  return events;
}

/** Verifies the journals of a run and of its children, and an export of them. */
export async function expectWhole(host: RunHost, runId = "r1"): Promise<void> {
  const journals = await host.journal(runId);
  assert.notEqual(journals.length, 0);
  const { faults, head } = verifyJournal(journals);
  assert.deepEqual(faults, []);
  const exported = Buffer.from([...exportLines(journals)].join(""));
  assert.deepEqual(verifyExport(readExport(exported), head).faults, []);
}

/** Resolves when `holds` is true, which is checked at every change. */
export async function until(host: RunHost, holds: () => Promise<boolean>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const check = (): void => {
      holds().then((yes) => {
        if (!yes) return;
        stop();
        resolve();
      }, reject);
    };
    const stop = host.onChange(check);
    check();
  });
}

export async function untilAsked(host: RunHost, count = 1): Promise<readonly OpenRequest[]> {
  await until(host, async () => (await host.requests()).length >= count);
  return await host.requests();
}

/** Runs pending work that needs no timer and no other process. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Whether a promise settles without a timer or another process. */
export async function isSettled(work: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  work.then(note, note);
  await turns();
  return settled;
}

/** The recorded cancel of a run: who requested it, when and why. */
export async function cancelIn(host: RunHost, runId = "r1"): Promise<unknown> {
  const journal = (await host.journal(runId)).find((each) => each.runId === runId);
  const record = journal?.records.find(({ phase, stepId }) => phase === "lifecycle" && stepId === "cancel");
  return record === undefined ? undefined : JSON.parse(record.value);
}
