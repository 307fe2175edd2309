// Calls of an agent as the journal has them.

import type { JournalRecord, Json, RunHost, SluiceEvent } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { parseAttemptStep, readVerdicts, textField } from "@sluice/core/runtime";
import type { TranscriptEntry } from "@sluice/stages";
import { recordedEntries } from "@sluice/stages/runtime";
import { isRefusal } from "./words.ts";

/** Where a run has a call. */
export interface RecordedCallPlace {
  readonly runId: string;
  readonly executionId: string;
  /** Of the execution: turns are counted in each attempt. */
  readonly attempt: number;
  readonly turn: number;
  readonly index: number;
}

/** A call that an agent made in an earlier process, which may not have read its answer. */
export interface EarlierCall extends RecordedCallPlace {
  readonly tool: string;
  readonly input: Json;
  /** Whether the agent's own program runs it; absent if that is not known. */
  readonly native?: boolean;
  /** Whether it had ended when the run was resumed. */
  readonly hasEnded: boolean;
  /** What a person's denial says, of a call that was made before the last turn. */
  readonly denial?: Json;
}
/** The same, as the journal has it. */
export interface LastCall extends Omit<EarlierCall, "native"> {
  /** Whether the gate was asked about it, as about no call that completes a state. */
  readonly isJudged: boolean;
  /** Whether a person decided about it. */
  readonly isDecided: boolean;
}

type Journals = Pick<RunHost, "tree" | "records" | "get">;

/** What became of a call, from the end of its run's journal. */
export async function recordedResult(
  host: Journals,
  { runId, executionId, attempt, turn, index }: RecordedCallPlace,
): Promise<{ readonly ok: boolean; readonly output: Json } | undefined> {
  const callId = `t${turn}.c${index}`;
  const isIt = (entry: TranscriptEntry): boolean =>
    "callId" in entry && entry.callId === callId && entry.executionId === executionId && entry.attempt === attempt;
  const isCall = (entry: TranscriptEntry): boolean => entry.kind === "call" && isIt(entry);
  const { entries } = await latestEntries(host, runId, isCall);
  const at = entries.findLastIndex(isCall);
  const found = at < 0 ? undefined : entries.slice(at).findLast((entry) => entry.kind === "result" && isIt(entry));
  return found?.kind === "result" ? { ok: found.ok, output: found.output } : undefined;
}

/**
 * The calls of the last turn of every run of the tree that is not over, and of those that ended after the agent's last reply: it has
 * read all that happened before. Of those that were refused, only the ones that a person refused, also in the turn before.
 */
export async function lastCalls(host: Journals, rootId: string): Promise<readonly LastCall[]> {
  const over: { readonly runId: string; readonly records: number }[] = [];
  const turns: LastTurn[] = [];
  for (const run of await host.tree(rootId)) {
    if ((await host.get(run.runId))?.end === undefined) turns.push(await lastTurn(host, run.runId));
    else over.push(run);
  }
  const ended: (LastTurn & { readonly endedAt: number })[] = [];
  for (const { runId, records } of over) {
    const last = await host.records(runId, records - 1, 1);
    const endedAt = last.flatMap((record) => readEvents(runId, record)).at(-1)?.at ?? 0;
    if (endedAt >= latestReply(turns)) ended.push({ ...(await lastTurn(host, runId)), endedAt });
  }
  const reply = latestReply([...turns, ...ended]);
  return [...turns, ...ended.filter(({ endedAt }) => endedAt >= reply)].flatMap(({ calls }) => calls);
}

interface LastTurn {
  /** When the agent made it; 0 without a turn. */
  readonly at: number;
  readonly calls: readonly LastCall[];
}

function latestReply(turns: readonly LastTurn[]): number {
  return turns.reduce((most, { at }) => Math.max(most, at), 0);
}

async function lastTurn(host: Journals, runId: string): Promise<LastTurn> {
  const { entries, records } = await latestEntries(host, runId, ({ kind }) => kind === "call");
  const last = entries.findLast(({ kind }) => kind === "call");
  if (last === undefined) return { at: 0, calls: [] };
  const ofAttempt = entries.filter(
    ({ executionId, attempt }) => executionId === last.executionId && attempt === last.attempt,
  );
  const judged = new Set(records.flatMap((record) => judgedIn(record, last)));
  const events = records.flatMap((record) => readEvents(runId, record)).filter((event) => isOfAttempt(event, last));
  const calls = ofAttempt.flatMap((entry): readonly LastCall[] => {
    if (entry.kind !== "call" || entry.input === undefined) return [];
    const { callId, tool, input, executionId, attempt, turn } = entry;
    const index = Number(/\.c(\d+)$/.exec(callId)?.[1] ?? Number.NaN);
    const result = ofAttempt.findLast((one) => one.kind === "result" && one.callId === callId);
    const decision = decisionOf(events, turn, callId);
    const isRefused = result?.kind === "result" && isRefusal(result);
    if (!Number.isInteger(index) || (isRefused && decision !== "deny")) return [];
    // Another call was made before the agent read what a person denied.
    const denial = isRefused && turn === last.turn - 1 ? { denial: result.output } : {};
    if (turn !== last.turn && denial.denial === undefined) return [];
    const place = { runId, executionId, attempt, turn, index };
    const facts = { isJudged: judged.has(callId), isDecided: decision !== undefined };
    return [{ ...place, tool, input, hasEnded: result !== undefined, ...facts, ...denial }];
  });
  const first = events.find((event) => isAfterReply(event, last.turn));
  return { at: first?.at ?? 0, calls };
}

function isOfAttempt({ executionId, attempt }: SluiceEvent, of: TranscriptEntry): boolean {
  return executionId === of.executionId && attempt === of.attempt;
}

/** Whether an event was recorded in a turn after its reply. */
function isAfterReply({ type, data }: SluiceEvent, turn: number): boolean {
  if (type === "turn.started") return false;
  return data.turn === turn || textField(data, "callId")?.startsWith(`t${turn}.`) === true;
}

/** What a person answered about a call. A request about a transition is one of its turn. */
function decisionOf(events: readonly SluiceEvent[], turn: number, callId: string): string | undefined {
  const isTransition = events.some(({ type, data }) => TRANSITIONS.has(type) && data.callId === callId);
  const answered = events.findLast(({ type, data }) => {
    if (type === "grant.answered") return data.callId === callId;
    const isOfTurn = textField(data, "requestId")?.includes(`/turn/${turn}/accept/`) === true;
    return type === "request.answered" && isTransition && isOfTurn;
  });
  return answered && textField(answered.data, "answer");
}

const TRANSITIONS: ReadonlySet<string> = new Set(["transition.accepted", "transition.rejected"]);

/** The ids of the calls of a turn, or of the one before, that the gate was asked about in a record. */
function judgedIn({ stepId, value }: JournalRecord, of: TranscriptEntry): readonly string[] {
  const step = parseAttemptStep(stepId);
  if (step?.kind !== "calls" || step.part !== "verdicts") return [];
  const { executionId, attempt, turn } = step;
  if (executionId !== of.executionId || attempt !== of.attempt || turn < of.turn - 1) return [];
  return (readVerdicts(value) ?? []).map(({ id }) => id);
}

interface LatestEntries {
  readonly entries: readonly TranscriptEntry[];
  readonly records: readonly JournalRecord[];
}

/** The end of a run's transcript, back to an entry that `includes` wants, if it has one, and the records that it is read from. */
async function latestEntries(
  host: Journals,
  runId: string,
  includes: (entry: TranscriptEntry) => boolean,
): Promise<LatestEntries> {
  const run = (await host.tree(runId)).find((one) => one.runId === runId);
  let latest: LatestEntries = { entries: [], records: [] };
  for (let end = run?.records ?? 0; end > 0; end -= STRIDE) {
    const from = Math.max(0, end - STRIDE);
    const read = await host.records(runId, from, end - from);
    latest = {
      entries: [...recordedEntries(runId, read), ...latest.entries],
      records: [...read, ...latest.records],
    };
    if (latest.entries.some(includes)) break;
  }
  return latest;
}

/** How many records are read at once. */
const STRIDE = 100;
